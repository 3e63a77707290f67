"""The kernel that writes facts as text, in JSON or as rows of a CSV file."""

from __future__ import annotations

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import MOST_DIGITS, Bytes, put_integer, put_text

_OPEN, _CLOSE, _COMMA = b"[],"
_NUMBERS = 4
_SEGMENT_BYTES = 2 * MOST_DIGITS + 4  # two brackets, a comma in between, one to the next


def most_bytes(texts: int, glue: int, facts: int, segments: int) -> int:
    """Bytes that facts may take, whose texts take so many, with so many segments in all.

    Args:
        texts: bytes of all ids.
        glue: bytes of the pieces between a fact's fields.
        facts: how many there are.
        segments: how many their curves have in all.
    """
    return texts + facts * (glue + _NUMBERS * MOST_DIGITS) + segments * _SEGMENT_BYTES


@kernel()
def write_facts(
    out: Bytes,
    ends: Int64Array,
    glue: Bytes,
    glue_bounds: Int64Array,
    traces: Bytes,
    trace_bounds: Int64Array,
    instances: Bytes,
    instance_bounds: Int64Array,
    timestamps_ns: Int64Array,
    input_token_lens: Int64Array,
    block_size_tokens: Int64Array,
    block_bytes: Int64Array,
    starts: Int64Array,
    runs: Int64Array,
    offsets: Int64Array,
) -> None:
    """Write R facts, end to end, into `out`, uint8[`most_bytes`]; where each ends, into `ends`, int64[R].

    `glue` is eight pieces: what stands before each field of a fact, and after the last. `traces` and `instances` are R
    ids each, as they are to be written. These three are as in `Texts`; the others are those of `FactBatch` and
    `FlatCurves`.
    """
    at: Integer = 0
    for row in range(len(timestamps_ns)):
        at = put_text(out, at, glue, glue_bounds[0], glue_bounds[1])
        at = put_text(out, at, traces, trace_bounds[row], trace_bounds[row + 1])
        at = put_text(out, at, glue, glue_bounds[1], glue_bounds[2])
        at = put_text(out, at, instances, instance_bounds[row], instance_bounds[row + 1])
        at = put_text(out, at, glue, glue_bounds[2], glue_bounds[3])
        at = put_integer(out, at, timestamps_ns[row])
        at = put_text(out, at, glue, glue_bounds[3], glue_bounds[4])
        at = put_integer(out, at, input_token_lens[row])
        at = put_text(out, at, glue, glue_bounds[4], glue_bounds[5])
        at = put_integer(out, at, block_size_tokens[row])
        at = put_text(out, at, glue, glue_bounds[5], glue_bounds[6])
        at = put_integer(out, at, block_bytes[row])
        at = put_text(out, at, glue, glue_bounds[6], glue_bounds[7])
        for segment in range(offsets[row], offsets[row + 1]):
            if segment > offsets[row]:
                out[at] = _COMMA
                at += 1
            out[at] = _OPEN
            at = put_integer(out, at + 1, starts[segment])
            out[at] = _COMMA
            at = put_integer(out, at + 1, runs[segment])
            out[at] = _CLOSE
            at += 1
        at = put_text(out, at, glue, glue_bounds[7], glue_bounds[8])
        ends[row] = at
