"""The format `sglang`: SGLang's export of its request log, one JSON object a line."""

from __future__ import annotations

from litehit.request import Request
from litehit.time_units import NS_PER_S
from service.formats.base import RecordContext, time_of
from service.formats.fast_object import Member
from service.formats.fields import integer, key_list, text, time_ns
from service.formats.object_format import ObjectFormat
from service.formats.prefix_blocks import full_block_keys

_WANTED = {
    "id": Member.VALUE,
    "timestamp": Member.VALUE,
    "block_size": Member.VALUE,
    "input_length": Member.VALUE,
    "hash_ids": Member.KEYS,
}


class SglangFormat(ObjectFormat):
    """Prefix keys of all blocks, the partial last one included: that one is dropped. Times are seconds since 1970."""

    name = "sglang"
    wanted = _WANTED

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        input_length = integer(fields, "input_length", minimum=0)
        block = integer(fields, "block_size", minimum=1)
        return Request(
            instance_id=self._naming.instance_of(None, fields, context),
            trace_id=text(fields, "id") or f"{self.name}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "timestamp", NS_PER_S), context, "timestamp"),
            block_keys=full_block_keys(key_list(fields, "hash_ids"), input_length, block, "hash_ids", "block_size"),
            input_token_len=input_length,
            trace_block_size_tokens=block,
        )
