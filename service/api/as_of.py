"""What an answer says of itself: which window, and which facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from schemas.answers import AsOf, MissingFacts, WindowAnswer
from service.api.reach import Reach
from service.api.windows import TimeWindow, format_time
from service.archive.segment import ChainKey
from service.archive.status import ArchiveStatus

Lag: TypeAlias = Callable[[], Mapping[ChainKey, int]]
"""Facts that are in the topic and not yet in the index, for each partition that this process reads."""


def archive_lag(status: Callable[[], ArchiveStatus]) -> Lag:
    """The lag of an archiver in this process, whose listener is the index."""
    return lambda: {one.chain: one.lag for one in status().partitions if one.lag is not None}


def window_answer(window: TimeWindow) -> WindowAnswer:
    """The window, in both ways to write a time."""
    return WindowAnswer(from_=_time(window.from_ns), to=_time(window.to_ns), from_ns=window.from_ns, to_ns=window.to_ns)


def as_of_answer(reached: Sequence[tuple[ChainKey, Reach]], lag: Mapping[ChainKey, int]) -> list[AsOf]:
    """How far each chain is summed; one that is read but has no facts yet is at offset 0."""
    reaches: dict[ChainKey, Reach | None] = {**dict.fromkeys(lag), **dict(reached)}
    answers = []
    for chain, reach in sorted(reaches.items()):
        time_ns = reach.last_time_ns if reach else None
        answers.append(
            AsOf(
                topic=chain.topic,
                generation=chain.generation,
                partition=chain.partition,
                start_offset=reach.start_offset if reach else 0,
                next_offset=reach.next_offset if reach else 0,
                missing=[MissingFacts(from_offset=low, to_offset=high) for low, high in reach.missing] if reach else [],
                time=_time(time_ns),
                time_ns=time_ns,
                lag=lag.get(chain),
            )
        )
    return answers


def _time(nanoseconds: int | None) -> str | None:
    return None if nanoseconds is None else format_time(nanoseconds)
