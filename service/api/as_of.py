"""What an answer says of itself: which window, and which facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from pydantic_core import to_json

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


@lru_cache(maxsize=64)
def window_json(window: TimeWindow) -> bytes:
    """The same as an answer has it; most calls ask for one of few windows, and most of all for everything."""
    return to_json(window_answer(window), by_alias=True)


def as_of_answer(reached: Sequence[tuple[ChainKey, Reach]], lag: Mapping[ChainKey, int]) -> list[AsOf]:
    """How far each chain is summed; one that is read but has no facts yet is at offset 0."""
    reaches: dict[ChainKey, Reach | None] = {**dict.fromkeys(lag), **dict(reached)}
    answers = []
    for chain, reach in sorted(reaches.items()):
        time_ns = reach.last_time_ns if reach and reach.has_facts else None
        answers.append(
            AsOf(
                topic=chain.topic,
                generation=chain.generation,
                partition=chain.partition,
                start_offset=reach.start_offset if reach else 0,
                next_offset=reach.next_offset if reach else 0,
                missing=[MissingFacts(from_offset=low, to_offset=high) for low, high in reach.missing] if reach else [],
                unreadable=list(reach.unreadable) if reach else [],
                time=_time(time_ns),
                time_ns=time_ns,
                lag=lag.get(chain),
            )
        )
    return answers


@dataclass(frozen=True, slots=True)
class AsOfAnswer:
    """Which facts an answer counts.

    Attributes:
        chains: each chain's.
        json: the same as an answer has it.
    """

    chains: list[AsOf]
    json: bytes

    @classmethod
    def of(cls, chains: list[AsOf]) -> AsOfAnswer:
        """Write them."""
        return cls(chains, to_json(chains, by_alias=True))


class LastAsOf:
    """`as_of_answer`, made again only where facts or lags have changed since the call before. For any thread."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[tuple[ChainKey, Reach]], Mapping[ChainKey, int], AsOfAnswer] | None = None

    def answer(self, reached: Sequence[tuple[ChainKey, Reach]], lag: Mapping[ChainKey, int]) -> AsOfAnswer:
        """See `as_of_answer`; `reached` is the index's own, which never changes."""
        last = self._last
        if last is not None and last[0] is reached and last[1] == lag:
            return last[2]
        made = AsOfAnswer.of(as_of_answer(reached, lag))
        self._last = reached, dict(lag), made
        return made


def _time(nanoseconds: int | None) -> str | None:
    return None if nanoseconds is None else format_time(nanoseconds)
