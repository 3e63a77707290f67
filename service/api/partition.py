"""One partition's share of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from litehit.curves import Int64Array
from service.api.sums import Sums, add_sums, sums_of
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import SegmentInfo


@dataclass(frozen=True, slots=True)
class Reach:
    """How far some facts go.

    Attributes:
        next_offset: first offset past them.
        first_time_ns, last_time_ns: earliest and latest time of a fact, in nanoseconds.
    """

    next_offset: int
    first_time_ns: int
    last_time_ns: int

    def __or__(self, other: Reach | None) -> Reach:
        """How far both together go."""
        if other is None:
            return self
        return Reach(
            max(self.next_offset, other.next_offset),
            min(self.first_time_ns, other.first_time_ns),
            max(self.last_time_ns, other.last_time_ns),
        )


@dataclass(frozen=True, slots=True)
class TailRows:
    """A batch of facts that no summed segment holds.

    Attributes:
        rows: the facts, at least one.
        reach: how far they go.
    """

    rows: ArchivedFacts
    reach: Reach

    @classmethod
    def of(cls, rows: ArchivedFacts) -> TailRows:
        """Wrap facts, at least one."""
        times = rows.facts.timestamps_ns
        return cls(rows, Reach(int(rows.fact_offsets[-1]) + 1, int(times.min()), int(times.max())))


@dataclass(frozen=True, slots=True)
class PartitionSums:
    """The facts of one chain that were seen, summed. It never changes: what adds to it makes a new one.

    The sums of segments and of the tail are kept apart, for the tail can be taken back.

    Attributes:
        segments: the segments that are summed, by base offset.
        segment_sums: sums over them.
        segment_reach: how far they go; None without any.
        tail: facts past the segments, in order.
        tail_sums: sums over the tail.
        tail_reach: how far it goes; None without any.
    """

    segments: Mapping[int, SegmentInfo] = field(default_factory=dict)
    segment_sums: Sums = field(default_factory=dict)
    segment_reach: Reach | None = None
    tail: tuple[TailRows, ...] = ()
    tail_sums: Sums = field(default_factory=dict)
    tail_reach: Reach | None = None

    @property
    def reach(self) -> Reach | None:
        """How far everything goes; None without any fact."""
        return self.tail_reach if self.segment_reach is None else self.segment_reach | self.tail_reach

    @property
    def tail_facts(self) -> int:
        """Facts of the tail."""
        return sum(sums.requests for sums in self.tail_sums.values())

    def with_tail(self, rows: ArchivedFacts) -> PartitionSums:
        """With further facts at its end, but for those that a summed segment holds.

        Another archiver may have published facts, and this index summed them, before this process's archiver, still
        consuming them, noticed.
        """
        rows = _from_offset(rows, self.segment_reach.next_offset if self.segment_reach else 0)
        if not len(rows):
            return self
        batch = TailRows.of(rows)
        return replace(
            self,
            tail=(*self.tail, batch),
            tail_sums=add_sums(self.tail_sums, sums_of(rows.facts)),
            tail_reach=batch.reach | self.tail_reach,
        )

    def without_tail(self) -> PartitionSums:
        """As of the end of its segments."""
        return replace(self, tail=(), tail_sums={}, tail_reach=None)

    def with_tail_published(self, info: SegmentInfo) -> PartitionSums | None:
        """With the start of the tail as a segment; None where the tail does not hold all facts of the segment."""
        inside, rest = self._split_tail(info.end_offset)
        if sum(len(batch.rows) for batch in inside) != info.rows:
            return None
        sums = self.tail_sums
        if rest:
            sums = {}
            for batch in inside:
                sums = add_sums(sums, sums_of(batch.rows.facts))
        return self._with_segment(info, sums, rest)

    def with_segment(self, info: SegmentInfo, sums: Sums) -> PartitionSums:
        """With a segment of these sums; facts of the tail that lie before its end are the segment's."""
        _, rest = self._split_tail(info.end_offset)
        return self._with_segment(info, sums, rest)

    def _with_segment(self, info: SegmentInfo, sums: Sums, rest: tuple[TailRows, ...]) -> PartitionSums:
        added = replace(
            self.without_tail(),
            segments={**self.segments, info.base_offset: info},
            segment_sums=add_sums(self.segment_sums, sums),
            segment_reach=Reach(info.end_offset, info.first_time_ns, info.last_time_ns) | self.segment_reach,
        )
        for batch in rest:
            added = added.with_tail(batch.rows)
        return added

    def _split_tail(self, offset: int) -> tuple[tuple[TailRows, ...], tuple[TailRows, ...]]:
        """The tail before and from an offset."""
        before: list[TailRows] = []
        after: list[TailRows] = []
        for batch in self.tail:
            if batch.reach.next_offset <= offset:
                before.append(batch)
                continue
            rest = _from_offset(batch.rows, offset)
            if len(rest) == len(batch.rows):
                after.append(batch)
            else:
                before.append(TailRows.of(_select(batch.rows, np.arange(len(batch.rows) - len(rest)))))
                after.append(TailRows.of(rest))
        return tuple(before), tuple(after)


def _from_offset(rows: ArchivedFacts, offset: int) -> ArchivedFacts:
    first = int(np.searchsorted(rows.fact_offsets, offset))
    return _select(rows, np.arange(first, len(rows))) if first else rows


def _select(rows: ArchivedFacts, index: Int64Array) -> ArchivedFacts:
    return ArchivedFacts(rows.facts.select(index), rows.fact_offsets[index], rows.source_offsets[index])
