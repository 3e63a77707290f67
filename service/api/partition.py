"""One partition's share of the index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from service.api.sums import Sums, add_sums
from service.api.tail import Reach, Tail, from_offset
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import SegmentInfo


@dataclass(frozen=True, slots=True)
class PartitionSums:
    """The facts of one chain that were seen, summed. It never changes: what adds to it makes a new one.

    The sums of segments and of the tail are kept apart, for the tail can be taken back.

    Attributes:
        segments: the segments that are summed, by base offset.
        segment_sums: sums over them.
        segment_reach: how far they go; None without any.
        tail: facts past the segments.
    """

    segments: Mapping[int, SegmentInfo] = field(default_factory=dict)
    segment_sums: Sums = field(default_factory=dict)
    segment_reach: Reach | None = None
    tail: Tail = field(default_factory=Tail)

    @property
    def reach(self) -> Reach | None:
        """How far everything goes; None without any fact."""
        return self.tail.reach if self.segment_reach is None else self.segment_reach | self.tail.reach

    @property
    def facts(self) -> int:
        """Facts of segments and tail."""
        return sum(info.rows for info in self.segments.values()) + self.tail.rows

    @property
    def sums(self) -> tuple[Sums, ...]:
        """Sums that make up everything together."""
        return self.segment_sums, self.tail.settled_sums, self.tail.fresh_sums

    def with_tail(self, rows: ArchivedFacts) -> PartitionSums:
        """With further facts at its end, but for those that a summed segment holds.

        Another archiver may have published facts, and this index summed them, before this process's archiver, still
        consuming them, noticed.
        """
        rows = from_offset(rows, self.segment_reach.next_offset if self.segment_reach else 0)
        return replace(self, tail=self.tail.plus(rows)) if len(rows) else self

    def without_tail(self) -> PartitionSums:
        """As of the end of its segments."""
        return replace(self, tail=Tail())

    def with_tail_published(self, info: SegmentInfo) -> PartitionSums | None:
        """With the start of the tail as a segment; None where the tail does not hold all facts of the segment."""
        inside, rest = self.tail.split(info.end_offset)
        return self._with_segment(info, inside.sums(), rest) if inside.rows == info.rows else None

    def with_segment(self, info: SegmentInfo, sums: Sums) -> PartitionSums:
        """With a segment of these sums; facts of the tail that lie before its end are the segment's."""
        return self._with_segment(info, sums, self.tail.split(info.end_offset)[1])

    def _with_segment(self, info: SegmentInfo, sums: Sums, rest: Tail) -> PartitionSums:
        return PartitionSums(
            {**self.segments, info.base_offset: info},
            add_sums(self.segment_sums, sums),
            Reach(info.end_offset, info.first_time_ns, info.last_time_ns) | self.segment_reach,
            rest,
        )
