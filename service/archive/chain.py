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
    """A segment left out of the chain although it covers offsets that the chain does not.

    Attributes:
        segment: the one left out.
        chain_end: where the chain stood, behind the segment's base.
    """

    segment: SegmentInfo
    chain_end: int


@dataclass(frozen=True, slots=True)
class Chain:
    """The segments of one partition of one generation, as the store holds them.

    Attributes:
        key: what it covers.
        segments: those that count, by offset; no two cover the same offset.
        holes: what they and the expired ones leave out, from offset 0 on.
        overlaps: segments that do not count, and should.
        damaged: files that could not be read.
        expired: what stands in the place of segments whose facts retention removed, by offset.
        superseded: segments all of whose offsets are covered by others, into which they were merged; they do not count,
            and are about to be deleted.
    """

    key: ChainKey
    segments: tuple[SegmentInfo, ...] = ()
    holes: tuple[Hole, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    damaged: tuple[SegmentError, ...] = ()
    expired: tuple[SegmentInfo, ...] = ()
    superseded: tuple[SegmentInfo, ...] = ()

    @classmethod
    def of(cls, key: ChainKey, segments: Iterable[SegmentInfo], damaged: Sequence[SegmentError] = ()) -> Chain:
        """Put segments of one key in order and find what is wrong with them."""
        chained: list[SegmentInfo] = []
        expired: list[SegmentInfo] = []
        holes: list[Hole] = []
        left_out: list[Overlap] = []
        end = 0
        # What others were merged into has the first one's base, so it comes before them.
        for segment in sorted(segments, key=lambda one: one.base_offset):
            if segment.base_offset < end:
                left_out.append(Overlap(segment, end))
                continue
            if segment.base_offset > end:
                holes.append(Hole(end, segment.base_offset))
            (chained if segment.expired_rows is None else expired).append(segment)
            end = segment.end_offset

        def covered(segment: SegmentInfo) -> bool:
            return segment.end_offset <= end and not any(
                hole.base_offset < segment.end_offset and segment.base_offset < hole.end_offset for hole in holes
            )

        return cls(
            key,
            tuple(chained),
            tuple(holes),
            tuple(one for one in left_out if not covered(one.segment)),
            tuple(damaged),
            tuple(expired),
            tuple(one.segment for one in left_out if covered(one.segment)),
        )

    def covering(self, offset: int) -> SegmentInfo | None:
        """The segment that covers an offset; an accepted gap, and what expired, is covered by none."""
        place = bisect_right(self.segments, offset, key=lambda one: one.first_offset)
        return self.segments[place - 1] if place and offset < self.segments[place - 1].end_offset else None

    @property
    def start_offset(self) -> int:
        """Where its facts begin: behind those that expired, else 0."""
        return self.expired[-1].end_offset if self.expired else 0

    @property
    def expired_facts(self) -> int:
        """Facts that retention removed."""
        return sum(one.expired_rows or 0 for one in self.expired)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Offsets that are missing for good; no fault, for the operator accepted them."""
        return tuple(Gap(one.base_offset, one.gap_end) for one in self.segments if one.gap_end is not None)

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """Offsets behind its start whose facts it lacks, as (first, first no longer missing): holes and gaps."""
        holes = [(one.base_offset, one.end_offset) for one in self.holes]
        gaps = [(one.base_offset, one.end_offset) for one in self.gaps]
        return tuple(sorted((first, end) for first, end in (*holes, *gaps) if end > self.start_offset))

    @property
    def damaged_end(self) -> tuple[SegmentError, ...]:
        """The damaged files behind the last segment that counts: what they held, and how far, is unknown."""
        end = self.end_offset
        places = ((error, parse_path(error.path)) for error in self.damaged)
        return tuple(error for error, place in places if place is not None and place[1] >= end)

    @property
    def unreadable_from(self) -> tuple[int, ...]:
        """Base offsets of `damaged_end`, ascending."""
        return tuple(sorted(place[1] for one in self.damaged_end if (place := parse_path(one.path)) is not None))

    @property
    def next_offset(self) -> int:
        """Base of the segment to come: where the last one, or what expired, ends; else 0. Holes do not move it.

        Raises:
            ChainBroken: the last segment can't be read, or is left out as an overlap, so its end is unknown.
        """
        end = self.end_offset
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
    def end_offset(self) -> int:
        """Where what counts ends; 0 without any. It is the chain's end unless something behind it is damaged."""
        return max(self.segments[-1].end_offset if self.segments else 0, self.start_offset)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, a sentence each; nothing where every offset is covered.

        Gaps, facts that expired, and superseded segments are no faults.
        """
        holes = [f"{self.key}: no segment covers offsets {one.base_offset} to {one.end_offset}" for one in self.holes]
        overlaps = [
            f"{one.segment.path}: not used, for the segments before it reach to offset {one.chain_end}"
            for one in self.overlaps
        ]
        return (*holes, *overlaps, *map(str, self.damaged))
