"""The format `bailian`: the traces of alibaba-edu/qwen-bailian-usagetraces-anon, one JSON object a line."""

from __future__ import annotations

from litehit.preprocess import chain_keys
from litehit.request import Request
from litehit.time_units import NS_PER_S
from service.formats.base import RecordContext, time_of
from service.formats.fast_object import Member
from service.formats.fields import integer, key_list, text, time_ns
from service.formats.object_format import ObjectFormat
from service.formats.prefix_blocks import full_block_keys

BLOCK_SIZE_TOKENS = 16
_WANTED = {
    "chat_id": Member.VALUE,
    "timestamp": Member.VALUE,
    "input_length": Member.VALUE,
    "hash_ids": Member.KEYS,
}


class BailianFormat(ObjectFormat):
    """Hashes of all blocks by themselves, the partial last one included: that one is dropped, the others are chained.

    Chaining makes prefix keys of them whatever the registry says; `enable_prefix_hash` chains once more, which changes
    no answer. Times are seconds from the trace's start. `type` tells the kind of chat and is not looked at.
    """

    name = "bailian"
    wanted = _WANTED

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        input_length = integer(fields, "input_length", minimum=0)
        hashes = full_block_keys(key_list(fields, "hash_ids"), input_length, BLOCK_SIZE_TOKENS, "hash_ids")
        return Request(
            instance_id=self._naming.instance_of(None, fields, context),
            trace_id=text(fields, "chat_id") or f"{self.name}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "timestamp", NS_PER_S), context, "timestamp"),
            block_keys=chain_keys(hashes),
            input_token_len=input_length,
            trace_block_size_tokens=BLOCK_SIZE_TOKENS,
        )
