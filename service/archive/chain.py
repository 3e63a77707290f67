"""The chain of segments of one partition, and what is wrong with it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.archive.errors import ChainBroken, SegmentError
from service.archive.segment import ChainKey, SegmentInfo, parse_path


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets `base_offset:end_offset` that no segment covers although later ones exist."""

    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets `base_offset:end_offset` that expired before they were archived; their segment says so."""

    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """A segment left out of the chain because the chain covers offsets of it already.

    Attributes:
        segment: the one left out.
        chain_end: where the chain stood; a segment that ends at or before it adds nothing, so nothing is missing.
    """

    segment: SegmentInfo
    chain_end: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The segments of one partition of one generation, as the store holds them.

    Attributes:
        key: what it covers.
        segments: those that count, by offset; no two cover the same offset.
        holes: what they leave out, from offset 0 on.
        overlaps: segments that do not count.
        damaged: files that could not be read.
    """

    key: ChainKey
    segments: tuple[SegmentInfo, ...] = ()
    holes: tuple[Hole, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    damaged: tuple[SegmentError, ...] = ()

    @classmethod
    def of(cls, key: ChainKey, segments: Iterable[SegmentInfo], damaged: Sequence[SegmentError] = ()) -> Chain:
        """Put segments of one key in order and find what is wrong with them."""
        chained: list[SegmentInfo] = []
        holes: list[Hole] = []
        overlaps: list[Overlap] = []
        end = 0
        for segment in sorted(segments, key=lambda one: one.base_offset):
            if segment.base_offset < end:
                overlaps.append(Overlap(segment, end))
                continue
            if segment.base_offset > end:
                holes.append(Hole(end, segment.base_offset))
            chained.append(segment)
            end = segment.end_offset
        return cls(key, tuple(chained), tuple(holes), tuple(overlaps), tuple(damaged))

    def covering(self, offset: int) -> SegmentInfo | None:
        """The segment that covers an offset; an accepted gap is covered by none."""
        place = bisect_right(self.segments, offset, key=lambda one: one.first_offset)
        return self.segments[place - 1] if place and offset < self.segments[place - 1].end_offset else None

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Offsets that are missing for good; no fault, for the operator accepted them."""
        return tuple(Gap(one.base_offset, one.gap_end) for one in self.segments if one.gap_end is not None)

    @property
    def damaged_end(self) -> tuple[SegmentError, ...]:
        """The damaged files behind the last segment that counts: what they held, and how far, is unknown."""
        end = self.segments[-1].end_offset if self.segments else 0
        places = ((error, parse_path(error.path)) for error in self.damaged)
        return tuple(error for error, place in places if place is not None and place[1] >= end)

    @property
    def next_offset(self) -> int:
        """Base of the segment to come: where the last one ends, 0 without any. Holes do not move it.

        Raises:
            ChainBroken: the last segment can't be read, or is left out as an overlap, so its end is unknown.
        """
        end = self.segments[-1].end_offset if self.segments else 0
        for error in self.damaged_end:
            raise ChainBroken(f"{self.key}: the end of the archive is unknown: {error}; restore or remove the file")
        for overlap in self.overlaps:
            if overlap.segment.end_offset > end:
                raise ChainBroken(
                    f"{self.key}: {overlap.segment.path} begins inside the segment before it and ends after it; "
                    f"remove the one that is wrong"
                )
        return end

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, a sentence each; nothing where every offset is covered once. Gaps are no faults."""
        holes = [f"{self.key}: no segment covers offsets {one.base_offset} to {one.end_offset}" for one in self.holes]
        overlaps = [
            f"{one.segment.path}: not used, for the segments before it reach to offset {one.chain_end}"
            for one in self.overlaps
        ]
        return (*holes, *overlaps, *map(str, self.damaged))
