"""What kernels that write text share. The text goes into a byte array that the caller has made long enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.intrinsics import load_word, store_word, trailing_zeros
from litehit.jit import kernel
from litehit.recency import Integer

Bytes: TypeAlias = NDArray[np.uint8]

MOST_DIGITS = 20
"""Characters of an int64 in decimal, its sign included."""

_MINUS, _COMMA = b"-,"
_WORD_BYTES = 8
_EIGHT_DIGITS = np.uint64(10**8)  # what is less has at most so many
_ZEROS = np.uint64(int("30" * 8, 16))
_LAST_DIGIT = np.uint64(1 << 56)
_SPACE, _TILDE, _QUOTE, _BACKSLASH = b' ~"\\'


class Texts(NamedTuple):
    """R texts in UTF-8, end to end.

    Attributes:
        text: uint8[N].
        bounds: int64[R + 1]; text i is `text[bounds[i]:bounds[i + 1]]`.
    """

    text: Bytes
    bounds: Int64Array


def texts_of(texts: Sequence[str]) -> Texts:
    """Strings as kernels take them."""
    joined = "".join(texts)
    lengths = map(len, texts) if joined.isascii() else (len(text.encode()) for text in texts)
    bounds = np.fromiter(accumulate(lengths, initial=0), np.int64, len(texts) + 1)
    return Texts(np.frombuffer(joined.encode(), np.uint8), bounds)


def repeated(text: str, count: int) -> Texts:
    """The same string so many times."""
    encoded = text.encode()
    return Texts(np.frombuffer(encoded * count, np.uint8), np.arange(count + 1) * len(encoded))


def parts_of(out: Bytes, ends: Int64Array) -> list[bytes]:
    """R texts that a kernel has written end to end, given where each ends, int64[R]."""
    text = out[: ends[-1] if len(ends) else 0].tobytes()
    return [text[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


@kernel()
def put_integer(out: Bytes, at: Integer, value: Integer) -> Integer:
    """Write an int64 in decimal; where the next character goes. Of `MOST_DIGITS` bytes those behind are overwritten."""
    return _put_integer(out, at, value)


@kernel()
def put_integers(out: Bytes, at: Integer, values: Int64Array, low: Integer, high: Integer) -> Integer:
    """Write `values[low:high]` with commas between them, each as `put_integer` does; where the next character goes."""
    for i in range(low, high):
        at = _put_integer(out, at, values[i])
        out[at] = _COMMA
        at += 1
    return at - (high > low)


@kernel(inline="always")  # a call takes as long as the writing
def _put_integer(out: Bytes, at: Integer, value: Integer) -> Integer:
    magnitude = np.uint64(value)
    if value < 0:
        out[at] = _MINUS
        at += 1
        magnitude = np.uint64(0) - magnitude
    if magnitude < _EIGHT_DIGITS:
        at = _put_first_digits(out, at, magnitude)
    else:
        left = magnitude // _EIGHT_DIGITS
        if left < _EIGHT_DIGITS:
            at = _put_first_digits(out, at, left)
        else:
            first = left // _EIGHT_DIGITS
            at = _put_first_digits(out, at, first)
            store_word(out, at, _digits(left - first * _EIGHT_DIGITS) | _ZEROS)
            at += 8
        store_word(out, at, _digits(magnitude - left * _EIGHT_DIGITS) | _ZEROS)
        at += 8
    return at


@kernel(inline="always")
def _put_first_digits(out: Bytes, at: Integer, value: np.uint64) -> Integer:
    """Write a number of at most eight digits without zeros before it, and whatever in the rest of eight bytes."""
    digits = _digits(value)
    zeros = np.int64(trailing_zeros(digits | _LAST_DIGIT)) >> 3
    store_word(out, at, (digits | _ZEROS) >> np.uint64(8 * zeros))
    return at + 8 - zeros


@kernel(inline="always")
def _digits(value: np.uint64) -> np.uint64:
    """The values of the eight digits of a number, in the bytes of a word, the first in the lowest.

    The number is cut into halves of four digits, these into halves of two, and so on, all of them at once. A quotient
    is a product and a shift: 10486 / 2**20 is 1 / 100 just enough for four digits, 103 / 2**10 is 1 / 10 for two.
    """
    fours = value // np.uint64(10_000)
    fours |= (value - fours * np.uint64(10_000)) << np.uint64(32)
    hundreds = ((fours * np.uint64(10_486)) >> np.uint64(20)) & np.uint64(0x0000007F0000007F)
    twos = ((fours - hundreds * np.uint64(100)) << np.uint64(16)) | hundreds
    tens = ((twos * np.uint64(103)) >> np.uint64(10)) & np.uint64(0x000F000F000F000F)
    return ((twos - tens * np.uint64(10)) << np.uint64(8)) | tens


@kernel()
def put_text(out: Bytes, at: Integer, text: Bytes, low: Integer, high: Integer) -> Integer:
    """Write `text[low:high]`; where the next character goes."""
    while high - low >= _WORD_BYTES:
        store_word(out, at, load_word(text, low))
        at += _WORD_BYTES
        low += _WORD_BYTES
    while low < high:
        out[at] = text[low]
        at += 1
        low += 1
    return at


@kernel()
def plain_end(text: Bytes, at: Integer) -> Integer:
    """Where the next byte stands that is no plain character of a JSON string: its quote, where it is plain all through.

    Plain is what stands for itself, in ASCII. The caller sees to it that some other byte comes.
    """
    while _SPACE <= text[at] <= _TILDE and text[at] != _QUOTE and text[at] != _BACKSLASH:
        at += 1
    return at
