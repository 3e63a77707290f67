"""Input formats, one adapter a file, all behind `base.TraceFormat`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from litehit.errors import OptionError
from service.format_names import FormatName
from service.formats.bailian import BailianFormat
from service.formats.dynamo import DynamoFormat
from service.formats.litellm import LitellmFormat
from service.formats.mooncake import MooncakeFormat
from service.formats.naming import STATED, Naming, naming_by
from service.formats.native import NativeFormat
from service.formats.native_protobuf import NativeProtobufFormat
from service.formats.sglang import SglangFormat
from service.formats.tair import TairFormat
from service.formats.tair_publisher import TairPublisherFormat
from service.formats.trace_format import TraceFormat
from service.formats.weka import WekaFormat


def make_formats(naming: Naming) -> dict[str, TraceFormat]:
    """Every format by its name.

    Args:
        naming: how the instance of a record is told.
    """
    made: tuple[TraceFormat, ...] = (
        NativeFormat(naming),
        NativeProtobufFormat(naming),
        TairFormat(naming),
        TairPublisherFormat(naming),
        MooncakeFormat(naming),
        BailianFormat(naming),
        WekaFormat(naming),
        DynamoFormat(naming),
        LitellmFormat(naming),
        SglangFormat(naming),
    )
    return {each.name: each for each in made}


FORMATS = make_formats(STATED)
"""Every format, of records that state their instance."""


@dataclass(frozen=True, slots=True)
class TopicFormats:
    """How the records of a topic are read.

    Attributes:
        usual: the format of those whose headers name none.
        by_name: of the others.
        default_instance: the instance of records that name none and have no key; None: such a record has none.
    """

    usual: TraceFormat
    by_name: Mapping[str, TraceFormat]
    default_instance: str | None = None


def of_topic(name: FormatName, template: str | None = None, default_instance: str | None = None) -> TopicFormats:
    """How the records of a topic are read.

    Args:
        name: the format of those whose headers name none.
        template: of instance ids; None: records state their instance.
        default_instance: see `TopicFormats`.

    Raises:
        OptionError: the template is none.
    """
    by_name = _named_by(naming_by(template))
    return TopicFormats(by_name[name], by_name, default_instance)


def get(name: str, naming: Naming = STATED) -> TraceFormat:
    """The format of a name.

    Raises:
        OptionError: there is none.
    """
    try:
        return _named_by(naming)[name]
    except KeyError:
        raise OptionError(f"format {name!r} is unknown; use one of {', '.join(FORMATS)}") from None


def _named_by(naming: Naming) -> Mapping[str, TraceFormat]:
    return FORMATS if naming is STATED else make_formats(naming)
