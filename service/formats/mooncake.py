"""The format `mooncake`: the traces of kvcache-ai/Mooncake, one JSON object a line."""

from __future__ import annotations

import numpy as np

from litehit.key_columns import gather_keys
from litehit.numbered_texts import NumberedTexts
from litehit.request import Request, RequestBatch
from litehit.time_units import NS_PER_MS
from litehit.window import Window
from litehit.window_requests import WindowRequests
from service.formats.base import RecordContext, time_of
from service.formats.fast_object import Member
from service.formats.fields import integer, key_list, time_ns
from service.formats.flat_lines import read_flat
from service.formats.object_format import ObjectFormat
from service.formats.prefix_blocks import full_block_keys
from service.formats.trace_format import PlainRequests

DEFAULT_BLOCK_SIZE_TOKENS = 512
_NAME = "mooncake"
_LATEST_MS = (2**63 - 1) // NS_PER_MS
_INTEGERS = ("timestamp", "input_length", "block_size")
_KEYS = "hash_ids"
_WANTED = {**dict.fromkeys(_INTEGERS, Member.VALUE), _KEYS: Member.KEYS}


class MooncakeFormat(ObjectFormat):
    """Prefix keys of all blocks, the partial last one included: that one is dropped.

    Times are milliseconds from the trace's start. A trace id is made from the record's position, so a trace gives the
    same facts whether it is replayed or published.
    """

    name = _NAME
    wanted = _WANTED

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        input_length = integer(fields, "input_length", minimum=0)
        block = integer(fields, "block_size", minimum=1, default=DEFAULT_BLOCK_SIZE_TOKENS)
        return Request(
            instance_id=self._naming.instance_of(None, fields, context),
            trace_id=f"{_NAME}-{context.position}",
            timestamp_ns=time_of(time_ns(fields, "timestamp", NS_PER_MS), context, "timestamp"),
            block_keys=full_block_keys(key_list(fields, _KEYS), input_length, block, _KEYS, "block_size"),
            input_token_len=input_length,
            trace_block_size_tokens=block,
        )

    def read_plain(self, window: Window, instance_id: str | None) -> PlainRequests | None:
        """See `TraceFormat.read_plain`."""
        if instance_id is None or self._naming.by_template:
            return None
        lines = read_flat(window, _INTEGERS, _KEYS)
        times, lengths, blocks = lines.values.T
        has_time, has_length, has_block, has_keys = lines.given.T
        blocks = np.where(has_block, blocks, DEFAULT_BLOCK_SIZE_TOKENS)
        full_blocks, tails = np.divmod(lengths, np.maximum(blocks, 1))
        plain = (
            (lines.is_flat & has_time & has_length & has_keys)
            & ((times >= -_LATEST_MS) & (times <= _LATEST_MS) & (lengths >= 0) & (blocks >= 1))
            & (lines.key_counts == full_blocks + (tails > 0))
        )
        places = np.flatnonzero(plain)
        numbers = window.numbers_at(places)
        keys, offsets = gather_keys(lines.keys, lines.key_firsts[places], full_blocks[places])
        columns = RequestBatch(NumberedTexts(_NAME, numbers), times[places] * NS_PER_MS, lengths[places], keys, offsets)
        count = len(places)
        requests = WindowRequests(
            numbers, columns, (instance_id,), np.zeros(count, np.int64), blocks[places], np.zeros(count, np.bool_)
        )
        return PlainRequests(requests, places, np.flatnonzero(~(plain | lines.is_blank)))
