"""One chain's share of the index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from service.api.pages import SegmentSums
from service.api.reach import Reach
from service.api.tail import Tail
from service.archive.segment import SegmentInfo


@dataclass(frozen=True, slots=True)
class Extent:
    """What a chain's store says of facts that are not there.

    Attributes:
        start_offset: where its facts begin, behind those that retention removed; else 0.
        missing: offsets, as (first, first no longer missing), whose facts no segment holds.
        unreadable: why files behind the last segment can't be read; how many facts they hold is unknown.
    """

    start_offset: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainState:
    """The facts of one chain that are counted. It never changes: what adds to it makes a new one.

    Attributes:
        segments: the segments, by base offset, ascending.
        tail: facts past the segments.
        extent: what is not there.
    """

    segments: Mapping[int, SegmentSums] = field(default_factory=dict)
    tail: Tail = field(default_factory=Tail)
    extent: Extent = Extent()

    @cached_property
    def infos(self) -> Collection[SegmentInfo]:
        """The segments."""
        return [one.info for one in self.segments.values()]

    @cached_property
    def segment_reach(self) -> Reach | None:
        """How far the segments go; None without any."""
        if not self.infos:
            return None
        return Reach(
            max(info.end_offset for info in self.infos),
            min(info.first_time_ns for info in self.infos),
            max(info.last_time_ns for info in self.infos),
        )

    @property
    def reach(self) -> Reach | None:
        """How far everything goes; None where there never was a fact."""
        both = [one for one in (self.segment_reach, self.tail.reach) if one is not None]
        if not both:
            return Reach.without_facts(**asdict(self.extent)) if self.extent != Extent() else None
        return replace(both[0] | both[-1], **asdict(self.extent))

    @property
    def next_offset(self) -> int:
        """Where the segments end: facts before it are theirs, or were removed."""
        return max(self.segment_reach.next_offset if self.segment_reach else 0, self.extent.start_offset)

    def overlapping(self, info: SegmentInfo) -> list[SegmentSums]:
        """The segments that share offsets with one."""
        return [
            one
            for one in self.segments.values()
            if one.info.base_offset < info.end_offset and info.base_offset < one.info.end_offset
        ]

    def with_tail(self, tail: Tail) -> ChainState:
        """With another tail."""
        changed = replace(self, tail=tail)
        # What is known of the segments stays: a tail grows many times a second.
        for name in ("infos", "segment_reach"):
            if name in self.__dict__:
                changed.__dict__[name] = self.__dict__[name]
        return changed

    def with_segments(
        self, added: Iterable[SegmentSums], dropped: Iterable[SegmentInfo], tail: Tail, extent: Extent
    ) -> ChainState:
        """With other segments, another tail and another extent."""
        segments = dict(self.segments)
        for info in dropped:
            del segments[info.base_offset]
        segments.update((one.info.base_offset, one) for one in added)
        return ChainState(dict(sorted(segments.items())), tail, extent)
