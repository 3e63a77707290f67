"""The format `mooncake`: the traces of kvcache-ai/Mooncake, one JSON object a line."""

from __future__ import annotations

from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, instance_of, time_of
from service.formats.fields import integer, key_list, read_object, time_ns

DEFAULT_BLOCK_SIZE_TOKENS = 512
_NS_PER_MS = 1_000_000


class MooncakeFormat:
    """Prefix keys of all blocks, the partial last one included: that one is dropped.

    Times are milliseconds from the trace's start. A trace id is made from the record's position, so a trace gives the
    same facts whether it is replayed or published.
    """

    name = "mooncake"

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = read_object(record)
        input_length = integer(fields, "input_length", minimum=0)
        block = integer(fields, "block_size", minimum=1, default=DEFAULT_BLOCK_SIZE_TOKENS)
        keys = key_list(fields, "hash_ids")
        full_blocks, tail = divmod(input_length, block)
        blocks = full_blocks + (tail > 0)
        if len(keys) != blocks:
            raise FormatError(
                Reason.LENGTH_MISMATCH,
                f"hash_ids has {len(keys)} keys, but input_length {input_length} has {blocks} blocks of {block} tokens "
                f"(rounded up); send one key for each block, the partial last one included, or state the block_size",
            )
        return Request(
            instance_id=instance_of(None, context),
            trace_id=f"{self.name}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "timestamp", _NS_PER_MS), context, "timestamp"),
            block_keys=keys[:full_blocks],
            input_token_len=input_length,
            trace_block_size_tokens=block,
        )
