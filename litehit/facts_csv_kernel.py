"""The kernel that writes rows of the facts CSV."""

from __future__ import annotations

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import MOST_DIGITS, Bytes, put_integer, put_text

_COMMA, _QUOTE, _OPEN, _CLOSE, _FEED = b',"[]\n'
_ROW_BYTES = 4 * MOST_DIGITS + 11  # beside its texts and segments: four numbers, six commas, `"[` and `]"`, a line feed
_SEGMENT_BYTES = 2 * MOST_DIGITS + 4


def most_bytes(texts: int, rows: int, segments: int) -> int:
    """Bytes that rows may take, whose texts take so many, with so many segments in all."""
    return texts + rows * _ROW_BYTES + segments * _SEGMENT_BYTES


@kernel()
def write_rows(
    out: Bytes,
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
) -> Integer:
    """Write a line for each fact; how many bytes they take.

    `out` is uint8[`most_bytes`], to be written; `traces` and `instances` are fields as CSV has them, as in `Texts`; the
    others are those of `FactBatch` and `FlatCurves`.
    """
    at: Integer = 0
    for row in range(len(timestamps_ns)):
        at = put_text(out, at, traces, trace_bounds[row], trace_bounds[row + 1])
        out[at] = _COMMA
        at = put_text(out, at + 1, instances, instance_bounds[row], instance_bounds[row + 1])
        out[at] = _COMMA
        at = put_integer(out, at + 1, timestamps_ns[row])
        out[at] = _COMMA
        at = put_integer(out, at + 1, input_token_lens[row])
        out[at] = _COMMA
        at = put_integer(out, at + 1, block_size_tokens[row])
        out[at] = _COMMA
        at = put_integer(out, at + 1, block_bytes[row])
        out[at] = _COMMA
        out[at + 1] = _QUOTE
        out[at + 2] = _OPEN
        at += 3
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
        out[at] = _CLOSE
        out[at + 1] = _QUOTE
        out[at + 2] = _FEED
        at += 3
    return at
