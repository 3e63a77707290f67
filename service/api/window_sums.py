"""Sums of a window that cuts a chain's history: from rows, exactly, and with bounded work and memory."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from litehit.facts import FactBatch
from service.api.partition import PartitionSums
from service.api.sums import Sums, add_sums, sums_of
from service.api.windows import TimeWindow
from service.archive.archived_facts import ArchivedFacts
from service.archive.reader import EVERYTHING, FactFilter
from service.archive.segment import SegmentInfo
from service.errors import ServiceError

_CHUNK_ROWS = 65_536
"""Rows that are summed at once: summing costs by groups rather than by rows."""


class WindowTooLarge(ServiceError):
    """A window would read more rows than one call may."""

    def __init__(self, rows: int, limit: int) -> None:
        self.rows = rows
        self.limit = limit
        super().__init__(f"the window cuts segments of {rows} facts in all; one call reads {limit} at most")


class TooManyWindows(ServiceError):
    """As many calls as may are reading rows, or wait to."""


class SegmentRows(Protocol):
    """Reads the rows of published segments."""

    def __call__(self, info: SegmentInfo, wanted: FactFilter) -> Iterable[ArchivedFacts]:
        """The wanted facts of a segment, in batches."""


class WindowSums:
    """Sums rows of segments and tails.

    Args:
        read_rows: reads the rows of published segments.
        window_rows: most rows of segments that one call may read.
        window_calls: calls that may read rows at the same time.
        window_queue: calls that may wait for their turn to.
    """

    def __init__(self, read_rows: SegmentRows, *, window_rows: int, window_calls: int, window_queue: int) -> None:
        self._read_rows = read_rows
        self._window_rows = window_rows
        self._reading = threading.Semaphore(window_calls)
        self._admitted = threading.Semaphore(window_calls + window_queue)

    def of_segment(self, info: SegmentInfo) -> Sums:
        """Sums over a whole segment."""
        return _sum_chunks(rows.facts for rows in self._read_rows(info, EVERYTHING))

    def of_window(
        self, chains: Sequence[PartitionSums], window: TimeWindow, instance_ids: Collection[str] | None
    ) -> Sums:
        """Sums over the facts of a window and of some instances (None: of all).

        Raises:
            WindowTooLarge: it needs more rows than one call may read.
            TooManyWindows: too many calls are reading rows.
        """
        segments = [
            info
            for chain in chains
            for info in chain.segments.values()
            if window.overlaps(info.first_time_ns, info.last_time_ns)
        ]
        rows = sum(info.rows for info in segments)
        if rows > self._window_rows:
            raise WindowTooLarge(rows, self._window_rows)
        with self._turn():
            return _sum_chunks(self._facts(segments, chains, window, instance_ids))

    def _facts(
        self,
        segments: Iterable[SegmentInfo],
        chains: Iterable[PartitionSums],
        window: TimeWindow,
        instance_ids: Collection[str] | None,
    ) -> Iterator[FactBatch]:
        wanted = FactFilter(window.from_ns, window.to_ns, instance_ids)
        for info in segments:
            for rows in self._read_rows(info, wanted):
                yield rows.facts
        for chain in chains:
            for batch in chain.tail.batches:
                if window.overlaps(batch.reach.first_time_ns, batch.reach.last_time_ns):
                    yield _inside(batch.rows.facts, window, instance_ids)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._admitted.acquire(blocking=False):
            raise TooManyWindows("as many calls as may are reading windows already")
        try:
            with self._reading:
                yield
        finally:
            self._admitted.release()


def _sum_chunks(batches: Iterable[FactBatch]) -> Sums:
    sums: Sums = {}
    chunk: list[FactBatch] = []
    rows = 0
    for batch in batches:
        chunk.append(batch)
        rows += len(batch)
        if rows >= _CHUNK_ROWS:
            sums = add_sums(sums, sums_of(FactBatch.concatenate(chunk)))
            chunk, rows = [], 0
    return add_sums(sums, sums_of(FactBatch.concatenate(chunk))) if chunk else sums


def _inside(facts: FactBatch, window: TimeWindow, instance_ids: Collection[str] | None) -> FactBatch:
    mask = window.mask(facts.timestamps_ns)
    if instance_ids is not None:
        mask &= np.fromiter((one in instance_ids for one in facts.instance_ids), np.bool_, len(facts))
    return facts if mask.all() else facts.select(np.flatnonzero(mask))
