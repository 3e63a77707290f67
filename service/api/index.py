"""The index over all facts: exact sums at every capacity, of any instances, over any window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import structlog

from service.api.chain_state import Extent
from service.api.groups import Groups
from service.api.index_state import IndexState
from service.api.pages import SegmentSums
from service.api.pages_folder import PagesFolder
from service.api.reach import Reach
from service.api.rows import FactRows
from service.api.segment_reader import SegmentReader
from service.api.selection import Selection
from service.api.tail import TailChunk
from service.api.window_sums import WindowSums
from service.api.windows import TimeWindow
from service.archive.archived_facts import ArchivedFacts
from service.archive.errors import ArchiveError
from service.archive.segment import ChainKey, SegmentInfo
from service.errors import ServiceError

WINDOW_PIECES = 20_000_000
"""Pieces that the curves of one window may be merged of: some seconds of work, and half a gigabyte for that long."""

_RETRIES = 5
_log = structlog.get_logger()


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
class IndexSize:
    """What the index holds.

    Attributes:
        facts: facts counted.
        tail_facts: those of them that are held as rows.
        segments: segments counted.
        groups: groups of which there are facts.
        unreadable: files at the ends of chains that can't be read; what they hold is not counted.
        missing: offsets between segments whose facts no segment holds.
        loaded: the segments that were there at the start are counted; before, the last two say nothing yet.
    """

    facts: int
    tail_facts: int
    segments: int
    groups: int
    unreadable: int
    missing: int
    loaded: bool


class FactIndex:
    """Sums over all facts, of published segments and of the open tail, updated as facts arrive.

    The state is one immutable object that each change replaces: a reader takes it once and sees a single instant, sums
    and offsets together, and neither waits for a change nor holds one up.

    Whole histories are answered from totals. A window that cuts them is put together of whole segments, of whole hours
    of segments, and of the rows at its edges.

    Args:
        reader: reads segments.
        pages: folder of their pages, see `PagesFolder`; None keeps none.
        window_rows, window_calls, window_queue: how rows are read, see `WindowSums`.
    """

    def __init__(
        self,
        reader: SegmentReader,
        *,
        pages: Path | None = None,
        window_rows: int,
        window_calls: int = 2,
        window_queue: int = 16,
    ) -> None:
        self._windows = WindowSums(
            reader, window_rows=window_rows, window_calls=window_calls, window_queue=window_queue
        )
        self._folder = PagesFolder(pages, reader)
        self._state = IndexState()
        self._changing = threading.Lock()
        self._loading: str | None = "the store's segments are not listed yet"
        self._catch_up: Callable[[], None] = lambda: None

    def catches_up_by(self, catch_up: Callable[[], None]) -> None:
        """Say what looks at the store again; a call that finds a segment gone or replaced asks for it."""
        self._catch_up = catch_up

    # What changes it. Each chain's events come in order; those of several chains may come from several threads.

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """Further facts were consumed from the topic."""
        chunk = TailChunk(FactRows.of(rows.facts), rows.fact_offsets)
        with self._changing:
            self._state = self._state.with_tail(chain, chunk)

    def published(self, info: SegmentInfo) -> None:
        """A segment is in the store; its pages are made of the tail where that holds its facts, else of its rows."""
        self.follow([info], (), {})

    def tail_dropped(self, chain: ChainKey) -> None:
        """The tail is void: its facts will come again, from a segment of another archiver or from the topic."""
        with self._changing:
            self._state = self._state.without_tail(chain)

    def follow(
        self,
        added: Collection[SegmentInfo],
        removed: Collection[SegmentInfo],
        extents: Mapping[ChainKey, Extent],
    ) -> None:
        """Bring the index level with the store in one step: readers see all of it or nothing.

        Args:
            added: segments that are in the store. What shares offsets with one was merged into it.
            removed: segments that are gone.
            extents: of chains, where they are known.

        Raises:
            ArchiveError: a segment can't be read; nothing was changed.
        """
        sums = [self._open(info) for info in added if self._state.lacks(info)]  # takes long, so the others go on
        with self._changing:
            before = self._state
            self._state = before.with_store([one for one in sums if before.lacks(one.info)], removed, extents)
            held = self._state.segments()
        for one in sums:
            one.release()
        self._folder.drop(before.segments() - held, held)

    def sweep(self, chains: Collection[ChainKey]) -> None:
        """Remove files of pages of these chains that are of no segment any more."""
        self._folder.sweep(self._state.segments(), chains)

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
        state = self._state
        return IndexSize(
            facts=int(state.totals.requests.sum()),
            tail_facts=sum(chain.tail.facts for chain in state.chains.values()),
            segments=sum(len(chain.segments) for chain in state.chains.values()),
            groups=state.groups,
            unreadable=sum(len(chain.extent.unreadable) for chain in state.chains.values()),
            missing=sum(end - first for chain in state.chains.values() for first, end in chain.extent.missing),
            loaded=self._loading is None,
        )

    def segments(self) -> Collection[SegmentInfo]:
        """The segments it has counted."""
        return self._state.segments()

    def as_of(self) -> Sequence[tuple[ChainKey, Reach]]:
        """How far the facts of each chain go now, by chain.

        Raises:
            IndexLoading: the store is not summed yet.
        """
        if self._loading is not None:
            raise IndexLoading(self._loading)
        return self._state.as_of

    def earliest_ns(self) -> int | None:
        """Time of the earliest fact; None without any.

        Raises:
            IndexLoading: the store is not summed yet.
        """
        return min((reach.first_time_ns for _, reach in self.as_of() if reach.has_facts), default=None)

    def at_hand(self, window: TimeWindow, instance_ids: Collection[str], most_groups: int) -> Selection | None:
        """What `select` gives where it has no more groups in all, reads no rows and refuses no id; else None."""
        state = self._state
        if state.groups <= most_groups and state.is_inside(window) and all(map(state.totals.has, instance_ids)):
            return state.whole(instance_ids or None)
        return None

    def select(self, window: TimeWindow, instance_ids: Collection[str] | None) -> Selection:
        """Sum the facts of a window, exactly.

        Args:
            window: by the facts' own times.
            instance_ids: whose facts; None = everybody's.

        Raises:
            IndexLoading: the store is not summed yet.
            UnknownInstances: no fact at all has one of the ids.
            WindowTooLarge: the window needs more rows than one call may read.
            TooManyCalls: too many calls are reading rows.
            ArchiveError: a segment can't be read.
        """
        if self._loading is not None:
            raise IndexLoading(self._loading)
        for _ in range(_RETRIES):
            state = self._state  # this instant's; everything below reads nothing but it
            try:
                return self._select(state, window, instance_ids)
            except ArchiveError as error:
                # Its segments may have been merged, or have expired, since.
                _log.info("segment_moved_under_a_reader", error=str(error))
                self._catch_up()
                if self._state.segments() == state.segments():
                    raise
        return self._select(self._state, window, instance_ids)

    def _select(self, state: IndexState, window: TimeWindow, instance_ids: Collection[str] | None) -> Selection:
        if instance_ids is not None:
            unknown = [instance_id for instance_id in instance_ids if not state.totals.has(instance_id)]
            if unknown:
                near = get_close_matches(unknown[0], state.totals.instances(), n=1)
                raise UnknownInstances(unknown, next(iter(near), None))
        if state.is_inside(window):
            return state.whole(instance_ids)
        groups = state.totals.groups
        if instance_ids is not None:
            groups = Groups.of(key for key in groups.keys if key.instance_id in instance_ids)
        chains = [chain for _, chain in sorted(state.chains.items())]
        parts = self._windows.of_window(chains, window, groups)
        return Selection.of(groups, parts, state.as_of, WINDOW_PIECES)

    def _open(self, info: SegmentInfo) -> SegmentSums:
        parts, rows = self._state.makes_up(info)
        return self._folder.make(info, parts, rows)
