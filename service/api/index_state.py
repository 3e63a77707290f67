"""All that is counted at one instant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from service.api.chain_state import ChainState, Extent
from service.api.groups import Groups
from service.api.pages import SegmentPages, SegmentSums
from service.api.reach import Reach
from service.api.rows import FactRows
from service.api.selection import Part, Selection
from service.api.tail import Tail, TailChunk
from service.api.totals import Totals
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey, SegmentInfo


@dataclass(frozen=True)
class IndexState:
    """What the index counts. It never changes: each event makes a new one.

    Attributes:
        totals: sums over everything.
        chains: what makes it up, by chain.
    """

    totals: Totals = field(default_factory=Totals)
    chains: Mapping[ChainKey, ChainState] = field(default_factory=dict)

    # What changes it.

    def with_tail(self, key: ChainKey, chunk: TailChunk) -> IndexState:
        """With further facts at the end of a chain, but for those that a segment of it holds.

        Another archiver may have published facts, and these sums counted them, before this process's archiver, still
        consuming them, noticed.
        """
        chain = self._chain(key)
        rest = chunk.split(chain.next_offset)[1]
        if rest is None:
            return self
        return self._with(key, chain.with_tail(chain.tail.plus(rest)), self.totals.plus(rest.rows.groups, rest.sums))

    def without_tail(self, key: ChainKey) -> IndexState:
        """As of the end of a chain's segments."""
        chain = self._chain(key)
        return self._with(key, chain.with_tail(Tail()), _without(self.totals, chain.tail))

    def with_store(
        self,
        added: Sequence[SegmentSums],
        removed: Collection[SegmentInfo],
        extents: Mapping[ChainKey, Extent],
    ) -> IndexState:
        """With and without segments.

        Args:
            added: none of them lies inside a segment that is counted. They stand for the segments that share offsets
                with them, and for the facts of the tail before their end.
            removed: segments that are gone; those that are not counted are passed over.
            extents: of chains, where they are known.
        """
        state = self
        for key in sorted({one.info.chain for one in added} | {info.chain for info in removed} | extents.keys()):
            extent = extents.get(key, self._chain(key).extent)
            state = state._with_chain(
                key,
                [one for one in added if one.info.chain == key],
                {info for info in removed if info.chain == key},
                extent,
            )
        return state

    def _with_chain(
        self, key: ChainKey, added: Sequence[SegmentSums], removed: Collection[SegmentInfo], extent: Extent
    ) -> IndexState:
        chain, totals = self._chain(key), self.totals
        dropped = [one for one in chain.segments.values() if one.info in removed]
        end = chain.next_offset
        for one in added:
            merged = chain.overlapping(one.info)
            dropped += [part for part in merged if part not in dropped]
            end = max(end, one.info.end_offset)
        inside, rest = chain.tail.split(end)
        totals = _without(totals, inside)
        for one in dropped:
            totals = totals.minus(one.pages.groups, one.pages.totals)
        for one in added:
            totals = totals.plus(one.pages.groups, one.pages.totals)
        return self._with(key, chain.with_segments(added, [one.info for one in dropped], rest, extent), totals)

    # What reads it.

    def lacks(self, info: SegmentInfo) -> bool:
        """Whether a segment is neither counted nor merged into one that is."""
        return not any(
            one.info.base_offset <= info.base_offset and info.end_offset <= one.info.end_offset
            for one in self._chain(info.chain).overlapping(info)
        )

    def makes_up(self, info: SegmentInfo) -> tuple[Sequence[SegmentPages], Sequence[FactRows]]:
        """Pages and rows that hold exactly the facts of a segment; none where it has to be read."""
        chain = self._chain(info.chain)
        parts = chain.overlapping(info)
        end = parts[-1].info.end_offset if parts else info.base_offset
        before, _ = chain.tail.split(info.end_offset)
        _, tail = before.split(end)
        inside = all(
            info.base_offset <= one.info.base_offset and one.info.end_offset <= info.end_offset for one in parts
        )
        if not inside or sum(one.info.rows for one in parts) + tail.facts != info.rows:
            return (), ()
        return [one.pages for one in parts], [chunk.rows for chunk in tail.chunks]

    def segments(self) -> set[SegmentInfo]:
        """The segments that are counted."""
        return {info for chain in self.chains.values() for info in chain.infos}

    @cached_property
    def as_of(self) -> Sequence[tuple[ChainKey, Reach]]:
        """How far each chain goes that has facts or had some, by chain."""
        return [(key, chain.reach) for key, chain in sorted(self.chains.items()) if chain.reach is not None]

    @cached_property
    def groups(self) -> int:
        """Groups of which there are facts."""
        return int(np.count_nonzero(self.totals.requests))

    def is_inside(self, window: TimeWindow) -> bool:
        """Whether a window leaves no fact out."""
        return all(window.covers(reach.first_time_ns, reach.last_time_ns) for _, reach in self.as_of)

    @cached_property
    def everything(self) -> Selection:
        """All facts."""
        totals = self.totals
        kept = np.flatnonzero(totals.requests)
        places = np.full(len(totals.groups), -1, np.int64)
        places[kept] = np.arange(len(kept))
        # The same object from state to state, most often: what it knows of itself is kept with it.
        everyone = len(kept) == len(totals.groups)
        return Selection(
            totals.groups if everyone else Groups(tuple(totals.groups.keys[number] for number in kept)),
            totals.requests[kept],
            totals.input_tokens[kept],
            [Part(layer, places[layer.codes]) for layer in totals.layers],
            self.as_of,
        )

    def whole(self, instance_ids: Collection[str] | None) -> Selection:
        """All facts of some instances; None = of all."""
        return self.everything if instance_ids is None else self.everything.of_instances(instance_ids)

    def _chain(self, key: ChainKey) -> ChainState:
        return self.chains.get(key, ChainState())

    def _with(self, key: ChainKey, chain: ChainState, totals: Totals) -> IndexState:
        return replace(self, totals=totals, chains={**self.chains, key: chain})


def _without(totals: Totals, tail: Tail) -> Totals:
    for chunk in tail.chunks:
        totals = totals.minus(chunk.rows.groups, chunk.sums)
    return totals
