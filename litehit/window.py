"""Some consecutive records of a trace as one text: how traces are handed on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from litehit.curves import Int64Array

WINDOW_BYTES = 2**21
"""Of a window's text; more where one record is longer."""

_FEED = ord("\n")


class Window(NamedTuple):
    """L records.

    Attributes:
        text: the records, each ended by a line feed.
        numbers: L numbers, ascending or not, by which errors name the records.
    """

    text: bytes
    numbers: Sequence[int]

    def numbers_at(self, places: Int64Array) -> Int64Array:
        """The numbers of the records at some places."""
        if isinstance(self.numbers, range) and self.numbers.step == 1:
            return self.numbers.start + places
        return np.array(self.numbers, np.int64)[places]

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Each record with its number, without its line end."""
        for number, record in zip(self.numbers, self.text.split(b"\n"), strict=False):  # after the last feed is nothing
            yield number, record.rstrip(b"\r")


def records_in(text: bytes) -> int:
    """How many records a window's text holds: its line feeds, counted several times as fast as `bytes.count` does."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _FEED))


def windows_of(records: Iterable[tuple[int, bytes]], window_bytes: int = WINDOW_BYTES) -> Iterator[Window]:
    """Records that come one by one, with their numbers, in windows.

    Args:
        records: none has a line feed but at its end.
        window_bytes: a window ends with the record that reaches so many.
    """
    numbers: list[int] = []
    texts: list[bytes] = []
    size = 0
    for number, record in records:
        numbers.append(number)
        texts.append(record.rstrip(b"\r\n"))
        size += len(record)
        if size >= window_bytes:
            yield Window(_ended(texts), numbers)
            numbers, texts, size = [], [], 0
    if numbers:
        yield Window(_ended(texts), numbers)


def _ended(records: Sequence[bytes]) -> bytes:
    return b"\n".join((*records, b""))


def first_records(windows: Iterable[Window], count: int) -> Iterator[Window]:
    """The first records of windows, blank ones not counted and left out."""
    records = ((number, record) for window in windows for number, record in window.records() if record.strip())
    return windows_of(islice(records, count))
