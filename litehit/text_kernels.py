"""What kernels that write text share. The text goes into a byte array that the caller has made long enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer

Bytes: TypeAlias = NDArray[np.uint8]

MOST_DIGITS = 20
"""Characters of an int64 in decimal, its sign included."""

_MINUS, _ZERO = b"-0"
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


@kernel()
def put_integer(out: Bytes, at: Integer, value: Integer) -> Integer:
    """Write an int64 in decimal; where the next character goes."""
    magnitude = np.uint64(value)
    if value < 0:
        out[at] = _MINUS
        at += 1
        magnitude = np.uint64(0) - magnitude
    end = at + 1
    left = magnitude // np.uint64(10)
    while left > 0:
        end += 1
        left //= np.uint64(10)
    to = end
    while to > at:
        to -= 1
        left = magnitude // np.uint64(10)
        out[to] = np.uint8(_ZERO + magnitude - left * np.uint64(10))
        magnitude = left
    return end


@kernel()
def put_text(out: Bytes, at: Integer, text: Bytes, low: Integer, high: Integer) -> Integer:
    """Write `text[low:high]`; where the next character goes."""
    for i in range(low, high):
        out[at] = text[i]
        at += 1
    return at


@kernel()
def plain_end(text: Bytes, at: Integer) -> Integer:
    """Where the next byte stands that is no plain character of a JSON string: its quote, where it is plain all through.

    Plain is what stands for itself, in ASCII. The caller sees to it that some other byte comes.
    """
    while _SPACE <= text[at] <= _TILDE and text[at] != _QUOTE and text[at] != _BACKSLASH:
        at += 1
    return at
