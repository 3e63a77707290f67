"""The kernel that reads facts back from the very JSON that `write_facts` makes of them."""

from __future__ import annotations

import numpy as np

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import MOST_DIGITS, Bytes, plain_end

PADDING = 64
"""Bytes after the last fact that are looked at, all 0: more than any piece between fields has."""

_SEGMENT_BYTES = 5  # the least that a segment takes: two digits, two brackets and a comma
_MOST_BLOCKS = 2**62
_STRINGS, _INTEGERS = 2, 4  # of a fact, before its curve
_TOKENS, _BLOCK_TOKENS, _BLOCK_BYTES = 1, 2, 3  # among its integers
_NO_PLACE = -1
_TEN = 10
_MINUS, _ZERO, _OPEN, _CLOSE, _COMMA = b"-0[],"


def most_segments(text_bytes: int) -> int:
    """Segments of curves that a text of so many bytes can hold."""
    return text_bytes // _SEGMENT_BYTES


@kernel()
def read_facts(
    text: Bytes,
    ends: Int64Array,
    glue: Bytes,
    glue_bounds: Int64Array,
    bounds: Int64Array,
    numbers: Int64Array,
    starts: Int64Array,
    runs: Int64Array,
    offsets: Int64Array,
    most_tokens: Integer,
) -> bool:
    """Read R facts; whether all of them are valid, and written as `write_facts` writes facts whose ids are plain ASCII.

    `text` is the facts, end to end, and `PADDING`; each ends where `ends`, int64[R], says. `glue` is the eight pieces
    that stand before each field of a fact, and after the last, as in `Texts`. A request may have `most_tokens`.

    What is written: into `bounds`, int64[R, 4], where the two ids begin in the text, and end; into `numbers`,
    int64[R, 4], the four integers; into `starts` and `runs`, int64[`most_segments(len(text))`], and `offsets`,
    int64[R + 1], the curves, as in `FlatCurves`.
    """
    at: Integer = 0
    used: Integer = 0
    offsets[0] = 0
    for row in range(len(ends)):
        at = _fields(text, at, glue, glue_bounds, bounds[row], numbers[row], most_tokens)
        if at == _NO_PLACE:
            return False
        at, used = _curve(text, at, starts, runs, used, numbers[row, _TOKENS] // numbers[row, _BLOCK_TOKENS])
        if at == _NO_PLACE:
            return False
        at = _past_piece(text, at, glue, glue_bounds[-2], glue_bounds[-1])
        if at != ends[row]:
            return False
        offsets[row + 1] = used
    return True


@kernel()
def _fields(
    text: Bytes,
    at: Integer,
    glue: Bytes,
    glue_bounds: Int64Array,
    bounds: Int64Array,
    numbers: Int64Array,
    most_tokens: Integer,
) -> Integer:
    """Read a fact up to its curve, and return where that begins."""
    for field in range(_STRINGS + _INTEGERS):
        at = _past_piece(text, at, glue, glue_bounds[field], glue_bounds[field + 1])
        if at == _NO_PLACE:
            return _NO_PLACE
        if field < _STRINGS:
            bounds[2 * field] = at
            at = plain_end(text, at)
            bounds[2 * field + 1] = at
        else:
            at, numbers[field - _STRINGS] = _integer(text, at)
            if at == _NO_PLACE:
                return _NO_PLACE
    is_fact = 0 <= numbers[_TOKENS] <= most_tokens and numbers[_BLOCK_TOKENS] >= 1 and numbers[_BLOCK_BYTES] >= 1
    return _past_piece(text, at, glue, glue_bounds[-3], glue_bounds[-2]) if is_fact else _NO_PLACE


@kernel()
def _past_piece(text: Bytes, at: Integer, glue: Bytes, low: Integer, high: Integer) -> Integer:
    """Where `glue[low:high]` ends, if it stands here."""
    for i in range(low, high):
        if text[at] != glue[i]:
            return _NO_PLACE
        at += 1
    return at


@kernel()
def _integer(text: Bytes, at: Integer) -> tuple[Integer, Integer]:
    """An int64 as `put_integer` writes it, and where it ends."""
    is_negative = text[at] == _MINUS
    first = at + is_negative
    at = first
    magnitude = np.uint64(0)
    while np.uint8(text[at] - _ZERO) < _TEN and at - first < MOST_DIGITS:
        magnitude = magnitude * np.uint64(10) + np.uint64(text[at] - _ZERO)
        at += 1
    digits = at - first
    if digits in (0, MOST_DIGITS) or (text[first] == _ZERO and (digits > 1 or is_negative)):
        return _NO_PLACE, 0
    # Of at most 19 digits, so it has not wrapped.
    if magnitude > np.uint64(2**63 - 1) + np.uint64(is_negative):
        return _NO_PLACE, 0
    return at, np.int64(np.uint64(0) - magnitude if is_negative else magnitude)


@kernel()
def _curve(
    text: Bytes, at: Integer, starts: Int64Array, runs: Int64Array, used: Integer, most: Integer
) -> tuple[Integer, Integer]:
    """Segments that make a canonical curve of at most so many blocks: where they end, and how many are used then."""
    end: Integer = 0
    blocks: Integer = 0
    first = used
    while text[at] == (_OPEN if used == first else _COMMA):
        at += used > first
        if text[at] != _OPEN:
            return _NO_PLACE, used
        at, start = _integer(text, at + 1)
        if at == _NO_PLACE or text[at] != _COMMA:
            return _NO_PLACE, used
        at, run = _integer(text, at + 1)
        if at == _NO_PLACE or text[at] != _CLOSE:
            return _NO_PLACE, used
        if not (1 <= start < _MOST_BLOCKS and 1 <= run < _MOST_BLOCKS) or (used > first and start <= end):
            return _NO_PLACE, used
        end = start + run
        blocks += run
        if blocks > most:
            return _NO_PLACE, used
        starts[used], runs[used] = start, run
        used += 1
        at += 1
    return at, used
