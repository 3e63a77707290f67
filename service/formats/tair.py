"""The format `tair`: the tair standard trace, whose lines are request events as they stand."""

from __future__ import annotations

from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext
from service.formats.naming import STATED, Naming
from service.formats.native import NativeFormat, TypeAbsent
from service.formats.trace_format import TraceFormat


class TairFormat(TraceFormat):
    """Keys of full blocks only; the block is the registered trace block."""

    name = "tair"

    def __init__(self, naming: Naming = STATED) -> None:
        self._events = NativeFormat(naming)

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        try:
            content = self._events.parse(record, context)
        except TypeAbsent:
            raise FormatError(
                Reason.UNKNOWN_TYPE,
                "type is absent: this is the trace's old form, which is not read; "
                'convert it to lines whose type is "get", "request" or "write"',
            ) from None
        if isinstance(content, Registration):
            raise FormatError(
                Reason.UNKNOWN_TYPE,
                "type = 'register' is no event of the standard trace; send it as native (JSON) or native-protobuf",
            )
        return content
