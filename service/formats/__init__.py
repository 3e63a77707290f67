"""Input formats, one adapter a file, all behind `base.TraceFormat`."""

from __future__ import annotations

from collections.abc import Callable

from litehit.errors import OptionError
from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.bailian import BailianFormat
from service.formats.base import FormatError, RecordContext, TraceFormat
from service.formats.dynamo import DynamoFormat
from service.formats.litellm import LitellmFormat
from service.formats.mooncake import MooncakeFormat
from service.formats.native import NativeFormat
from service.formats.native_protobuf import NativeProtobufFormat
from service.formats.sglang import SglangFormat
from service.formats.tair import TairFormat
from service.formats.tair_publisher import TairPublisherFormat
from service.formats.weka import WekaFormat

FORMATS: dict[str, TraceFormat] = {
    each.name: each
    for each in (
        NativeFormat(),
        NativeProtobufFormat(),
        TairFormat(),
        TairPublisherFormat(),
        MooncakeFormat(),
        BailianFormat(),
        WekaFormat(),
        DynamoFormat(),
        LitellmFormat(),
        SglangFormat(),
    )
}
"""Every format by its name."""


def line_parser(trace_format: TraceFormat, instance_id: str | None) -> Callable[[bytes, int], Request | None]:
    """How `litehit.replay` reads a line of a format: line and number, from 1, to request.

    Args:
        trace_format: the format.
        instance_id: the instance of lines that name none.
    """

    def parse(line: bytes, number: int) -> Request | None:
        content = trace_format.parse(line, RecordContext(instance_id, number, timestamp_ns=None))
        if isinstance(content, Registration):
            raise FormatError(
                Reason.REGISTRATION_REFUSED,
                f"it registers {content.instance_id!r}, which only the topic takes; register the instance in the "
                f"registry file and remove the line",
            )
        return content

    return parse


def get(name: str) -> TraceFormat:
    """The format of a name.

    Raises:
        OptionError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise OptionError(f"format {name!r} is unknown; use one of {', '.join(FORMATS)}") from None
