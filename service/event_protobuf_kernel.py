"""The kernel that writes request events in binary, as protobuf writes them: fields in order, integers short."""

from __future__ import annotations

import numpy as np

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import Bytes, put_text

KEY_BYTES = 8

_VARINT, _LENGTH_DELIMITED = 0, 2  # ways in which a value is written
_INSTANCE_ID, _TRACE_ID, _BLOCK_KEYS = (number << 3 | _LENGTH_DELIMITED for number in (2, 3, 5))
_TIMESTAMP_NS, _INPUT_TOKEN_LEN, _TRACE_BLOCK = (number << 3 | _VARINT for number in (4, 6, 7))
_FIELDS = 6
_MOST_FIELD_BYTES = 11  # a tag and a varint
_MORE = 0x80


def most_bytes(texts: int, events: int, keys: int) -> int:
    """Bytes that events may take.

    Args:
        texts: bytes of the ids of all.
        events: how many there are.
        keys: how many they have in all.
    """
    return texts + events * _FIELDS * _MOST_FIELD_BYTES + keys * KEY_BYTES


@kernel()
def write_events(
    out: Bytes,
    ends: Int64Array,
    instances: Bytes,
    instance_bounds: Int64Array,
    instance_of: Int64Array,
    traces: Bytes,
    trace_bounds: Int64Array,
    timestamps_ns: Int64Array,
    keys: Bytes,
    offsets: Int64Array,
    input_token_lens: Int64Array,
    stated_blocks: Int64Array,
    not_stated: int,
) -> None:
    """Write R events, end to end, into `out`, uint8[`most_bytes`]; where each ends, into `ends`, int64[R].

    What has no presence of its own (the trace's id, keys, the length) is left out where it is empty or 0; so is a block
    that is `not_stated`. `traces` are R ids and `instances` those that `instance_of` counts, both as in `Texts`; `keys`
    are uint8[N * `KEY_BYTES`], the lowest byte first; the others are those of `RequestBatch` and `WindowRequests`.
    """
    at: Integer = 0
    for row in range(len(timestamps_ns)):
        instance = instance_of[row]
        at = _put_bytes(out, at, _INSTANCE_ID, instances, instance_bounds[instance], instance_bounds[instance + 1])
        if trace_bounds[row] < trace_bounds[row + 1]:
            at = _put_bytes(out, at, _TRACE_ID, traces, trace_bounds[row], trace_bounds[row + 1])
        at = _put_varint(out, at, _TIMESTAMP_NS, timestamps_ns[row])
        if offsets[row] < offsets[row + 1]:
            at = _put_bytes(out, at, _BLOCK_KEYS, keys, KEY_BYTES * offsets[row], KEY_BYTES * offsets[row + 1])
        if input_token_lens[row] != 0:
            at = _put_varint(out, at, _INPUT_TOKEN_LEN, input_token_lens[row])
        if stated_blocks[row] != not_stated:
            at = _put_varint(out, at, _TRACE_BLOCK, stated_blocks[row])
        ends[row] = at


@kernel()
def _put_varint(out: Bytes, at: Integer, tag: int, value: Integer) -> Integer:
    """Write a field that is an integer, or the length of one; where the next byte goes."""
    out[at] = tag
    left = np.uint64(value)
    while left >= np.uint64(_MORE):
        at += 1
        out[at] = np.uint8(left | np.uint64(_MORE))
        left >>= np.uint64(7)
    out[at + 1] = np.uint8(left)
    return at + 2


@kernel()
def _put_bytes(out: Bytes, at: Integer, tag: int, text: Bytes, low: Integer, high: Integer) -> Integer:
    """Write a field that is `text[low:high]`; where the next byte goes."""
    return put_text(out, _put_varint(out, at, tag, high - low), text, low, high)
