"""The facts that a question is about, summed: what every answer is read off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from litehit.aggregate import AggregateCurve
from litehit.curve_table import CurveTable
from litehit.curves import Int64Array
from litehit.variants import base_of
from service.api.groups import GroupKey, Groups
from service.api.instance_sums import InstanceSums
from service.api.reach import Reach
from service.archive.segment import ChainKey
from service.errors import ServiceError


class TooManyPieces(ServiceError):
    """One curve of the facts of a window would be merged of more pieces than one call may read.

    Attributes:
        pieces: how many.
        limit: how many it may.
    """

    def __init__(self, pieces: int, limit: int) -> None:
        self.pieces = pieces
        self.limit = limit
        super().__init__(f"the window's curves have {pieces} pieces in all; one call merges {limit} at most")


class HitSums(Protocol):
    """Facts of one group, summed; never changes."""

    @property
    def requests(self) -> int:
        """Number of facts."""

    @property
    def input_tokens(self) -> int:
        """Sum of their `input_token_len`."""

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """Hit blocks at K capacities in blocks (negative: infinite): int64[K] for int64[K]."""

    def ceiling(self) -> int:
        """Hit blocks at infinite capacity."""

    def curve(self) -> AggregateCurve:
        """One exact curve of all of it, not to be added to.

        Raises:
            TooManyPieces: it would be merged of too many.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some of the facts of a selection, or some to take off again.

    Attributes:
        table: sums.
        rows: int64[C], for each of the table's groups its place in the selection, -1 for one that is not selected. A
            place may come up several times; until it does, places ascend.
    """

    table: CurveTable
    rows: Int64Array

    def by_group(self) -> list[CurveTable]:
        """Tables that make it up, whose codes are places in the selection."""
        kept = np.flatnonzero(self.rows >= 0)
        rows = self.rows[kept]
        starts = np.flatnonzero(np.diff(rows, prepend=-1) <= 0)
        return [
            self.table.take(places).recoded(codes)
            for places, codes in zip(np.split(kept, starts), np.split(rows, starts), strict=True)
            if len(places)
        ]


@dataclass(frozen=True, eq=False)
class Selection:
    """Sums of facts, by group. It never changes, so threads may share it.

    Attributes:
        keyed: N groups, each with a fact.
        requests, input_tokens: int64[N].
        parts: what makes up their curves.
        as_of: how far the facts of each chain go that were looked at, by chain.
        most_pieces: bound on the work of `HitSums.curve`; None where there is none.
    """

    keyed: Groups
    requests: Int64Array
    input_tokens: Int64Array
    parts: Sequence[Part]
    as_of: Sequence[tuple[ChainKey, Reach]]
    most_pieces: int | None = None

    @classmethod
    def of(
        cls,
        groups: Groups,
        parts: Sequence[Part],
        as_of: Sequence[tuple[ChainKey, Reach]],
        most_pieces: int | None = None,
    ) -> Selection:
        """Of parts whose rows are numbers of groups; those without a fact are left out."""
        requests, input_tokens = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
        for part in parts:
            part.table.add_counts(part.rows, requests, input_tokens)
        kept = np.flatnonzero(requests)
        places = np.full(len(groups) + 1, -1, np.int64)  # the last is that of rows that are not selected, -1
        places[kept] = np.arange(len(kept))
        return cls(
            Groups(tuple(groups.keys[number] for number in kept)),
            requests[kept],
            input_tokens[kept],
            [Part(part.table, places[part.rows]) for part in parts],
            as_of,
            most_pieces,
        )

    @property
    def keys(self) -> Sequence[GroupKey]:
        """Of the groups, ascending: N keys."""
        return self.keyed.keys

    def of_instances(self, instance_ids: Collection[str]) -> Selection:
        """Only the groups of some instances."""
        chosen = sorted({n for one in instance_ids for n in self.keyed.of_instance.get(one, ())})
        places = np.full(len(self.keys) + 1, -1, np.int64)
        places[chosen] = np.arange(len(chosen))
        return Selection(
            Groups(tuple(self.keys[number] for number in chosen)),
            self.requests[chosen],
            self.input_tokens[chosen],
            [Part(part.table, places[part.rows]) for part in self.parts],
            self.as_of,
            self.most_pieces,
        )

    @cached_property
    def variants(self) -> Selection:
        """Only the variants of instances that are in it too: the same requests, analysed in other ways."""
        return self.of_instances(self._variant_ids)

    @cached_property
    def counted(self) -> Selection:
        """Without `variants`, so that each request counts once."""
        if not self._variant_ids:
            return self
        return self.of_instances(self.keyed.of_instance.keys() - self._variant_ids)

    @cached_property
    def _variant_ids(self) -> set[str]:
        known = self.keyed.of_instance
        return {instance_id for instance_id in known if base_of(instance_id) in known}

    def split(self, asked: Collection[str]) -> tuple[Selection, Selection]:
        """What an answer sums, and what it lists beside that; instances that are asked for are all summed."""
        return (self, self.of_instances(())) if asked else (self.counted, self.variants)

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """Hit blocks of each group at K capacities of its own (negative: infinite): int64[N, K] for int64[N, K]."""
        found = np.zeros(capacity_blocks.shape, np.int64)
        for part in self.parts:
            part.table.add_hits(part.rows, capacity_blocks, found)
        return found

    @cached_property
    def ceilings(self) -> Int64Array:
        """Hit blocks of each group at infinite capacity: int64[N]."""
        return self.hits(np.full((len(self.keys), 1), -1, np.int64))[:, 0]

    @cached_property
    def by_instance(self) -> InstanceSums:
        """What it counts of each instance."""
        return InstanceSums.of(self.keyed, self.requests, self.input_tokens, self.ceilings)

    @property
    def groups(self) -> Sequence[tuple[GroupKey, HitSums]]:
        """Each group by itself."""
        return [(key, _GroupSums(self, place)) for place, key in enumerate(self.keys)]

    @cached_property
    def merged(self) -> CurveTable:
        """One table of all of it, whose codes are the groups' places. Two threads that ask first make the same one.

        Raises:
            TooManyPieces: it would be merged of too many.
        """
        tables = [table for part in self.parts for table in part.by_group()]
        pieces = sum(table.pieces for table in tables)
        if self.most_pieces is not None and pieces > self.most_pieces:
            raise TooManyPieces(pieces, self.most_pieces)
        return CurveTable.sum(tables)

    def curve(self, place: int) -> AggregateCurve:
        """The curve of a group; see `merged`."""
        curve = self._curves.get(place)
        if curve is None:
            curve = self._curves[place] = self.merged.curve(place)
        return curve

    @cached_property
    def _curves(self) -> dict[int, AggregateCurve]:
        return {}


@dataclass(frozen=True, slots=True)
class _GroupSums:
    """See `HitSums`."""

    selection: Selection
    place: int

    @property
    def requests(self) -> int:
        return int(self.selection.requests[self.place])

    @property
    def input_tokens(self) -> int:
        return int(self.selection.input_tokens[self.place])

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        found = np.zeros((1, len(capacity_blocks)), np.int64)
        table = self.selection.merged.slice(self.place, self.place + 1)
        table.add_hits(np.zeros(1, np.int64), capacity_blocks[np.newaxis], found)
        hits: Int64Array = found[0]
        return hits

    def ceiling(self) -> int:
        return int(self.selection.ceilings[self.place])

    def curve(self) -> AggregateCurve:
        return self.selection.curve(self.place)
