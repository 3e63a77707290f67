"""The kernel that writes request events as JSON."""

from __future__ import annotations

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import MOST_DIGITS, Bytes, put_integer, put_integers, put_text

_NUMBERS = 3


def most_bytes(texts: int, glue: int, events: int, keys: int) -> int:
    """Bytes that events may take.

    Args:
        texts: bytes of the ids of all.
        glue: bytes of the pieces between an event's members.
        events: how many there are.
        keys: how many they have in all.
    """
    return texts + events * (glue + _NUMBERS * MOST_DIGITS) + keys * (MOST_DIGITS + 1)


@kernel()
def write_events(
    out: Bytes,
    ends: Int64Array,
    glue: Bytes,
    glue_bounds: Int64Array,
    instances: Bytes,
    instance_bounds: Int64Array,
    instance_of: Int64Array,
    traces: Bytes,
    trace_bounds: Int64Array,
    timestamps_ns: Int64Array,
    keys: Int64Array,
    offsets: Int64Array,
    input_token_lens: Int64Array,
    stated_blocks: Int64Array,
    not_stated: int,
) -> None:
    """Write R events, end to end, into `out`, uint8[`most_bytes`]; where each ends, into `ends`, int64[R].

    `glue` is seven pieces: what stands before each member of an event, and after the last; the last member is left out
    where a block is `not_stated`. `traces` are R ids and `instances` those that `instance_of` counts, as they are to be
    written. These three are as in `Texts`; the others are those of `RequestBatch` and `WindowRequests`.
    """
    at: Integer = 0
    for row in range(len(timestamps_ns)):
        instance = instance_of[row]
        at = put_text(out, at, glue, glue_bounds[0], glue_bounds[1])
        at = put_text(out, at, instances, instance_bounds[instance], instance_bounds[instance + 1])
        at = put_text(out, at, glue, glue_bounds[1], glue_bounds[2])
        at = put_text(out, at, traces, trace_bounds[row], trace_bounds[row + 1])
        at = put_text(out, at, glue, glue_bounds[2], glue_bounds[3])
        at = put_integer(out, at, timestamps_ns[row])
        at = put_text(out, at, glue, glue_bounds[3], glue_bounds[4])
        at = put_integers(out, at, keys, offsets[row], offsets[row + 1])
        at = put_text(out, at, glue, glue_bounds[4], glue_bounds[5])
        at = put_integer(out, at, input_token_lens[row])
        if stated_blocks[row] != not_stated:
            at = put_text(out, at, glue, glue_bounds[5], glue_bounds[6])
            at = put_integer(out, at, stated_blocks[row])
        at = put_text(out, at, glue, glue_bounds[6], glue_bounds[7])
        ends[row] = at
