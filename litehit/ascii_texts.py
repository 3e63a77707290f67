"""Ids in ASCII as a column of text: as strings where one is asked for, and as text without making any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

from litehit.curves import Int64Array
from litehit.pieces import gather
from litehit.text_kernels import Bytes, Texts


class AsciiTexts(Sequence[str]):
    """R texts.

    Args:
        texts: R texts in ASCII.

    Attributes:
        texts: the same.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts

    @classmethod
    def gather(cls, text: Bytes, firsts: Int64Array, ends: Int64Array) -> AsciiTexts:
        """Copies of the pieces `text[firsts[i]:ends[i]]`, all in ASCII.

        Args:
            text: uint8[N].
            firsts: int64[R].
            ends: int64[R].
        """
        bounds = np.zeros(len(firsts) + 1, np.int64)
        np.cumsum(ends - firsts, out=bounds[1:])
        out = np.empty(bounds[-1], np.uint8)
        gather(text, firsts, bounds, out)
        return cls(Texts(out, bounds))

    def __len__(self) -> int:
        return len(self.texts.bounds) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> AsciiTexts: ...

    def __getitem__(self, index: int | slice) -> str | AsciiTexts:
        text, bounds = self.texts
        if isinstance(index, slice):
            return self.select(np.arange(len(self))[index])
        row = range(len(self))[index]
        return text[bounds[row] : bounds[row + 1]].tobytes().decode("ascii")

    def __iter__(self) -> Iterator[str]:
        string = self.joined()
        return (string[low:high] for low, high in pairwise(self.texts.bounds.tolist()))

    def joined(self) -> str:
        """All of them, end to end."""
        return self.texts.text.tobytes().decode("ascii")

    def select(self, rows: Int64Array) -> AsciiTexts:
        """Those of some rows, in their order."""
        text, bounds = self.texts
        return AsciiTexts.gather(text, bounds[rows], bounds[rows + 1])


def texts_at(texts: Sequence[str], rows: Int64Array) -> Sequence[str]:
    """The texts of some rows, in their order."""
    return texts.select(rows) if isinstance(texts, AsciiTexts) else [texts[row] for row in rows.tolist()]


def texts_joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """Texts, at least one sequence of them, in the order given."""
    columns = [part.texts for part in parts if isinstance(part, AsciiTexts)]
    if len(columns) < len(parts):
        return [text for part in parts for text in part]
    starts = np.cumsum([0, *(len(column.text) for column in columns)])
    bounds = [np.zeros(1, np.int64)]
    bounds += [start + column.bounds[1:] for start, column in zip(starts.tolist(), columns, strict=False)]
    return AsciiTexts(Texts(np.concatenate([column.text for column in columns]), np.concatenate(bounds)))
