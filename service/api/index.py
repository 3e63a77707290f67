"""The index over all facts: exact sums at every capacity, of any instances, over any window."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from service.api.partition import PartitionSums
from service.api.sums import GroupKey, GroupSums, HitSums, Sums
from service.api.tail import Reach
from service.api.window_sums import SegmentRows, WindowSums
from service.api.windows import TimeWindow
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo
from service.errors import ServiceError


class IndexLoading(ServiceError):
    """The index has not summed all segments of the store yet."""


class UnknownInstances(ServiceError):
    """No fact has these instance ids.

    Attributes:
        instance_ids: those asked for that no fact has.
        near: a known id that resembles the first of them; None where none does.
    """

    def __init__(self, instance_ids: Sequence[str], near: str | None) -> None:
        self.instance_ids = instance_ids
        self.near = near
        super().__init__(f"no fact has instance_id {', '.join(map(repr, instance_ids))}")


@dataclass(frozen=True, slots=True)
class Selection:
    """The facts that a query is about, summed.

    Attributes:
        groups: sums; a key may come up several times.
        as_of: how far the facts of each chain go that were looked at, by chain.
    """

    groups: Sequence[tuple[GroupKey, HitSums]]
    as_of: Sequence[tuple[ChainKey, Reach]]


@dataclass(frozen=True, slots=True)
class IndexSize:
    """What the index holds.

    Attributes:
        facts: facts summed.
        tail_facts: those of them that are held as rows.
        segments: segments summed.
        groups: sums held, each with its curves.
    """

    facts: int
    tail_facts: int
    segments: int
    groups: int


class FactIndex:
    """Sums over all facts, of published segments and of the open tail, updated as facts arrive.

    The state is one immutable mapping that each change replaces: a reader takes it once and sees a single instant, sums
    and offsets together, and neither waits for a change nor holds one up.

    Whole histories are answered from sums. A window that cuts a chain's history is summed from rows: those of the
    segments it overlaps and of the tail.

    Args:
        read_rows, window_rows, window_calls, window_queue: how rows are read, see `WindowSums`.
    """

    def __init__(
        self, read_rows: SegmentRows, *, window_rows: int, window_calls: int = 2, window_queue: int = 16
    ) -> None:
        self._rows = WindowSums(
            read_rows, window_rows=window_rows, window_calls=window_calls, window_queue=window_queue
        )
        self._chains: Mapping[ChainKey, PartitionSums] = {}
        self._changing = threading.Lock()
        self._loading: str | None = "the store's segments are not listed yet"

    # What changes it. Each chain's events come in order; those of several chains may come from several threads.

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """Further facts were consumed from the topic."""
        with self._changing:
            self._replace(chain, self._chain(chain).with_tail(rows))

    def published(self, info: SegmentInfo) -> None:
        """A segment is in the store; it is summed from the tail where that holds its facts, else from its rows."""
        with self._changing:
            chain = self._chain(info.chain)
            if info.base_offset in chain.segments:
                return
            promoted = chain.with_tail_published(info)
            if promoted is not None:
                self._replace(info.chain, promoted)
                return
        sums = self._rows.of_segment(info)  # takes long, so the others go on
        with self._changing:
            chain = self._chain(info.chain)
            if info.base_offset not in chain.segments:
                self._replace(info.chain, chain.with_segment(info, sums))

    def tail_dropped(self, chain: ChainKey) -> None:
        """The tail is void: its facts will come again, from a segment of another archiver or from the topic."""
        with self._changing:
            self._replace(chain, self._chain(chain).without_tail())

    def loading_at(self, done: int, total: int) -> None:
        """Say how far the first load of the store is; later on it says nothing."""
        if self._loading is not None:
            self._loading = f"summing the store: {done} of {total} segments done"

    def loaded(self) -> None:
        """The segments that were in the store at the start are summed: from now on the index answers."""
        self._loading = None

    # What reads it.

    def waiting(self) -> Sequence[str]:
        """What it waits for before it answers; empty when ready."""
        return () if self._loading is None else (self._loading,)

    def size(self) -> IndexSize:
        """What it holds now."""
        chains = self._chains.values()
        return IndexSize(
            facts=sum(chain.facts for chain in chains),
            tail_facts=sum(chain.tail.rows for chain in chains),
            segments=sum(len(chain.segments) for chain in chains),
            groups=sum(len(sums) for chain in chains for sums in chain.sums),
        )

    def segments(self) -> Collection[SegmentInfo]:
        """The segments it has summed."""
        return [info for chain in self._chains.values() for info in chain.segments.values()]

    def as_of(self) -> Sequence[tuple[ChainKey, Reach]]:
        """How far the facts of each chain go now, by chain.

        Raises:
            IndexLoading: the store is not summed yet.
        """
        if self._loading is not None:
            raise IndexLoading(self._loading)
        return [(key, reach) for key, chain in sorted(self._chains.items()) if (reach := chain.reach) is not None]

    def select(self, window: TimeWindow, instance_ids: Collection[str] | None) -> Selection:
        """Sum the facts of a window, exactly.

        Args:
            window: by the facts' own times.
            instance_ids: whose facts; None = everybody's.

        Raises:
            IndexLoading: the store is not summed yet.
            UnknownInstances: no fact at all has one of the ids.
            WindowTooLarge: the window needs more rows than one call may read.
            TooManyWindows: too many calls are reading rows.
        """
        if self._loading is not None:
            raise IndexLoading(self._loading)
        chains = sorted(self._chains.items())  # this instant's; everything below reads nothing but it
        if instance_ids is not None:
            _check_known(instance_ids, chains)
        groups: list[tuple[GroupKey, HitSums]] = []
        cut: list[PartitionSums] = []
        as_of: list[tuple[ChainKey, Reach]] = []
        for key, chain in chains:
            reach = chain.reach
            if reach is None:
                continue
            as_of.append((key, reach))
            span = reach.first_time_ns, reach.last_time_ns
            if window.covers(*span):
                for sums in chain.sums:
                    groups += _of(instance_ids, sums)
            elif window.overlaps(*span):
                cut.append(chain)
        if cut:
            groups += self._rows.of_window(cut, window, instance_ids).items()
        return Selection(groups, as_of)

    def _chain(self, key: ChainKey) -> PartitionSums:
        return self._chains.get(key, PartitionSums())

    def _replace(self, key: ChainKey, chain: PartitionSums) -> None:
        self._chains = {**self._chains, key: chain}


def _of(instance_ids: Collection[str] | None, sums: Sums) -> Iterator[tuple[GroupKey, GroupSums]]:
    return ((key, group) for key, group in sums.items() if instance_ids is None or key.instance_id in instance_ids)


def _check_known(instance_ids: Collection[str], chains: Sequence[tuple[ChainKey, PartitionSums]]) -> None:
    known = {key.instance_id for _, chain in chains for sums in chain.sums for key in sums}
    unknown = [instance_id for instance_id in instance_ids if instance_id not in known]
    if unknown:
        raise UnknownInstances(unknown, next(iter(get_close_matches(unknown[0], known, n=1)), None))
