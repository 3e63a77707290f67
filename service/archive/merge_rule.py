"""Which segments of a chain are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

from service.archive.chain import Chain
from service.archive.segment import SegmentInfo

Parts: TypeAlias = tuple[SegmentInfo, ...]


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Merges what begins in one cell of offsets, once the cell has enough segments and none can come any more.

    Cells are `[k * 2**n, (k + 1) * 2**n)`: small ones fill first, and what they became is merged again in larger ones.
    The largest possible one is taken whose segments are of like sizes, so that a fact is written a few times at most:
    about log(rows) / log(parts) times where segments come in small, once where there are many already.

    Since cells depend on nothing but offsets, any two merges, by whatever processes and from however old a listing,
    cover disjoint offsets, or the one covers the other: never can both stand and each hold what the other lacks. That
    makes several at once safe without a lock.

    Attributes:
        rows: offsets of the largest cell, at most.
        parts: segments that are worth merging.
    """

    rows: int
    parts: int

    def choose(self, chain: Chain, settled: Callable[[SegmentInfo], bool]) -> Iterator[Parts]:
        """What is to be merged into one each: consecutive segments without a gap, a hole or the chain's last between.

        Args:
            chain: as listed.
            settled: whether a segment has stood for long enough.
        """
        if self.rows and chain.segments:
            largest = 1 << (self.rows.bit_length() - 1)
            yield from self._in_cells(chain.segments, largest, chain.segments[-1].base_offset, settled)

    def _in_cells(
        self, segments: Sequence[SegmentInfo], size: int, closed: int, settled: Callable[[SegmentInfo], bool]
    ) -> Iterator[Parts]:
        for cell, members in groupby(segments, key=lambda one: one.base_offset // size):
            for run in runs(members):
                if len(run) < self.parts:
                    continue
                if (cell + 1) * size <= closed and self._alike(run) and all(map(settled, run)):
                    yield run
                elif size > 1:
                    yield from self._in_cells(run, size // 2, closed, settled)

    def _alike(self, run: Parts) -> bool:
        """Whether no segment is so large that it would be written again for the sake of some small ones."""
        rows = [segment.rows for segment in run]
        return 2 * sum(rows) >= self.parts * max(rows)


def spanning(parts: Parts, **more: Any) -> SegmentInfo:
    """What stands in the place of these: the first, with the offsets and times of all, and more fields."""
    return replace(
        parts[0],
        end_offset=parts[-1].end_offset,
        first_time_ns=min(part.first_time_ns for part in parts),
        last_time_ns=max(part.last_time_ns for part in parts),
        **more,
    )


def runs(segments: Iterable[SegmentInfo]) -> Iterator[Parts]:
    """Segments, by offset, in pieces that have no offsets missing within."""
    run: list[SegmentInfo] = []
    for segment in segments:
        if run and (segment.base_offset != run[-1].end_offset or segment.gap_end is not None):
            yield tuple(run)
            run = []
        run.append(segment)
    if run:
        yield tuple(run)
