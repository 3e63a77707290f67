"""The fast path of whole windows: wanted members of lines that are flat JSON objects, in columns.

A line is flat where its members are integers, plain strings, other numbers, bools and nulls, and the wanted list is one
of integers; wanted members are of the wanted kind and stand once. Any other line is left to the format's `parse`:
nothing here decides what is valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.scratch import Scratch
from litehit.window import Window, records_in
from service.formats import flat_kernel

_scratch = Scratch(np.int64)  # for the keys of a window


@dataclass(frozen=True, slots=True)
class FlatLines:
    """L lines in columns; a line's values and keys mean nothing where it is not flat, and are 0 where it has no such.

    Attributes:
        is_flat, is_blank: bool[L]; a line that is neither is for `parse`.
        values: int64[L, W], the wanted integers.
        bounds: int64[L, 2 T], where each of the wanted strings begins in the window's text, and ends.
        given: bool[L, W + T + 1]: whether a line has each of them, and the list of keys.
        keys: int64[K], lists of keys end to end, with gaps.
        key_firsts, key_counts: int64[L]; line i has the keys `key_firsts[i]:key_firsts[i] + key_counts[i]`.
    """

    is_flat: NDArray[np.bool_]
    is_blank: NDArray[np.bool_]
    values: Int64Array
    bounds: Int64Array
    given: NDArray[np.bool_]
    keys: Int64Array
    key_firsts: Int64Array
    key_counts: Int64Array


def read_flat(window: Window, integers: Sequence[str], keys: str, strings: Sequence[str] = ()) -> FlatLines:
    """The lines of a window.

    Args:
        window: the lines.
        integers: names of the W wanted integers, plain ASCII.
        keys: name of the list of keys, likewise.
        strings: names of the T wanted strings, likewise.
    """
    text, lines = window.text, len(window.numbers)
    if text and not text.endswith(b"\n"):  # a kernel does not see where its arrays end
        raise ValueError(f"the window's text ends without a line feed: {text[-20:]!r}")
    names = [name.encode("ascii") for name in (*integers, *strings, keys)]
    states = np.empty(lines, np.int8)
    values = np.zeros((lines, len(integers) + 2 * len(strings)), np.int64)
    given = np.zeros((lines, len(names)), np.bool_)
    found = _scratch.room(flat_kernel.most_keys(len(text)))
    firsts = np.empty(lines, np.int64)
    counts = np.empty(lines, np.int64)
    are_all = flat_kernel.read_lines(
        np.frombuffer(text + bytes(flat_kernel.PADDING), np.uint8),
        np.frombuffer(b"".join(names), np.uint8),
        np.fromiter(accumulate(map(len, names)), np.int64, len(names)),
        len(integers),
        states,
        values,
        given,
        found,
        firsts,
        counts,
    )
    if not are_all:
        raise ValueError(f"the window has {lines} records, but {records_in(text)} line feeds")
    return FlatLines(
        states == flat_kernel.FLAT,
        states == flat_kernel.BLANK,
        values[:, : len(integers)],
        values[:, len(integers) :],
        given,
        found[: firsts[-1] + counts[-1] if lines else 0].copy(),
        firsts,
        counts,
    )
