"""Records that are almost in order of their times, put in order within a bounded window."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

MAX_BYTES = 256 * 2**20
"""Of the records held back; beyond it the oldest go on before their window ends."""

NumberedLine: TypeAlias = tuple[int, bytes]
"""A record and the number of its line."""


def in_time_order(
    lines: Iterable[NumberedLine],
    time_of: Callable[[bytes], int | None],
    window_ns: int,
    max_bytes: int = MAX_BYTES,
) -> Iterator[NumberedLine]:
    """Yield records by time, those of one time as they come.

    A record is held back until one comes that is later by more than the window, so one that comes later than that after
    a record with a later time is out of order still. One that has no time goes on at once.

    Args:
        lines: the records.
        time_of: a record's time in nanoseconds; None: it has none.
        window_ns: nanoseconds.
        max_bytes: as `MAX_BYTES`.
    """
    held: list[tuple[int, int, bytes]] = []
    held_bytes = 0
    newest: int | None = None
    for number, line in lines:
        time = time_of(line)
        if time is None:
            yield number, line
            continue
        heapq.heappush(held, (time, number, line))
        held_bytes += len(line)
        newest = time if newest is None else max(newest, time)
        while held[0][0] < newest - window_ns or held_bytes > max_bytes:
            _, first, oldest = heapq.heappop(held)
            held_bytes -= len(oldest)
            yield first, oldest
            if not held:
                break
    while held:
        _, first, oldest = heapq.heappop(held)
        yield first, oldest
