"""Records that are almost in order of their times, put in order within a bounded window."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

MAX_BYTES = 256 * 2**20
"""Of the records held back; beyond it the oldest go on before their window ends."""

NumberedLine: TypeAlias = tuple[int, bytes]
"""A record and the number of its line."""


class TimeOrder:
    """Records that come by and by, those of one time in the order in which they come.

    A record is held back until one comes that is later by more than the window, so one that comes later than that after
    a record with a later time is out of order still. One that has no time goes on at once.

    Args:
        time_of: a record's time in nanoseconds; None: it has none.
        window_ns: nanoseconds.
        max_bytes: as `MAX_BYTES`.
    """

    def __init__(self, time_of: Callable[[bytes], int | None], window_ns: int, max_bytes: int = MAX_BYTES) -> None:
        self._time_of = time_of
        self._window_ns = window_ns
        self._max_bytes = max_bytes
        self._held: list[tuple[int, int, bytes]] = []
        self._held_bytes = 0
        self._newest: int | None = None

    def add(self, lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
        """Take the next records; yield those that need not be held back any more."""
        for number, line in lines:
            time = self._time_of(line)
            if time is None:
                yield number, line
                continue
            heapq.heappush(self._held, (time, number, line))
            self._held_bytes += len(line)
            self._newest = time if self._newest is None else max(self._newest, time)
            while self._held and (
                self._held[0][0] < self._newest - self._window_ns or self._held_bytes > self._max_bytes
            ):
                yield self._oldest()

    def rest(self) -> Iterator[NumberedLine]:
        """What is still held back: no record comes after the last one that was added."""
        while self._held:
            yield self._oldest()

    def _oldest(self) -> NumberedLine:
        _, number, line = heapq.heappop(self._held)
        self._held_bytes -= len(line)
        return number, line
