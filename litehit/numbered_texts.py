"""Ids that are a name and a number: as strings where one is asked for, and as text without making any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import MOST_DIGITS, Bytes, Texts, put_integer, put_text


class NumberedTexts(Sequence[str]):
    """R texts, `name-number` each.

    Args:
        name: of all of them.
        numbers: int64[R].

    Attributes:
        name: the same.
    """

    def __init__(self, name: str, numbers: Int64Array) -> None:
        self.name = name
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> NumberedTexts: ...

    def __getitem__(self, index: int | slice) -> str | NumberedTexts:
        if isinstance(index, slice):
            return NumberedTexts(self.name, self._numbers[index])
        return f"{self.name}-{self._numbers[index]}"

    def __iter__(self) -> Iterator[str]:
        name = self.name
        return (f"{name}-{number}" for number in self._numbers.tolist())

    def texts(self) -> Texts:
        """All of them in UTF-8."""
        before = np.frombuffer(f"{self.name}-".encode(), np.uint8)
        out = np.empty(len(self) * (len(before) + MOST_DIGITS), np.uint8)
        bounds = np.empty(len(self) + 1, np.int64)
        _write(out, bounds, before, self._numbers)
        return Texts(out[: bounds[-1]], bounds)


@kernel()
def _write(out: Bytes, bounds: Int64Array, before: Bytes, numbers: Int64Array) -> None:
    at: Integer = 0
    bounds[0] = 0
    for i in range(len(numbers)):
        at = put_integer(out, put_text(out, at, before, 0, len(before)), numbers[i])
        bounds[i + 1] = at
