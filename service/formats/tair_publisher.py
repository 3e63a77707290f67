"""The format `tair-publisher`: the log of tair's event publisher."""

from __future__ import annotations

from litehit.request import Request
from litehit.time_units import NS_PER_US
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, shown, time_of
from service.formats.fast_object import Member
from service.formats.fields import key_list, text, time_ns
from service.formats.object_format import ObjectFormat

_REQUEST = "GetCacheLocation"
_WRITES = frozenset({"StartWriteCache", "FinishWriteCache"})
_WANTED = {
    "type": Member.VALUE,
    "source": Member.VALUE,
    "trace_id": Member.VALUE,
    "trigger_time_us": Member.VALUE,
    "keys": Member.KEYS,
}


class TairPublisherFormat(ObjectFormat):
    """Keys of full blocks only, and no input length: it is their number times the registered trace block.

    Times are microseconds; `source` is the instance. What starts or finishes a write is ignored.
    """

    name = "tair-publisher"
    wanted = _WANTED

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        kind = fields.get("type")
        if isinstance(kind, str) and kind in _WRITES:
            return None
        if kind != _REQUEST:
            raise FormatError(
                Reason.UNKNOWN_TYPE,
                f"type = {shown(kind)} is unknown; send {_REQUEST!r}, or {' or '.join(map(repr, sorted(_WRITES)))} "
                f"for a write",
            )
        return Request(
            instance_id=self._naming.instance_of(text(fields, "source"), fields, context),
            trace_id=text(fields, "trace_id") or f"{self.name}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "trigger_time_us", NS_PER_US), context, "trigger_time_us"),
            block_keys=key_list(fields, "keys"),
            input_token_len=0,
        )
