"""The open tail: facts that no summed segment holds, as rows and as sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from litehit.curves import Int64Array
from litehit.facts import FactBatch
from service.api.sums import Sums, add_sums, sums_of
from service.archive.archived_facts import ArchivedFacts

_FRESH_ROWS = 4096
"""Rows that wait to be summed together: summing costs by groups rather than by rows, and a query sums them at most."""


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
    """A batch of facts.

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


@dataclass(frozen=True)
class Tail:
    """Facts in order of their offsets. It never changes: what adds to it makes a new one.

    Attributes:
        batches: the facts.
        reach: how far they go; None without any.
        rows: how many they are.
        settled_sums: sums over all but the fresh batches.
        fresh: the last batches, which are summed when somebody asks or when they are many.
    """

    batches: tuple[TailRows, ...] = ()
    reach: Reach | None = None
    rows: int = 0
    settled_sums: Sums = field(default_factory=dict)
    fresh: tuple[FactBatch, ...] = ()

    @classmethod
    def of(cls, batches: Iterable[TailRows]) -> Tail:
        """A tail of these batches."""
        tail = cls()
        for batch in batches:
            tail = tail._plus(batch)
        return tail

    def plus(self, rows: ArchivedFacts) -> Tail:
        """With further facts, at least one, at its end."""
        return self._plus(TailRows.of(rows))

    @cached_property
    def fresh_sums(self) -> Sums:
        """Sums over the fresh batches; two threads that ask first make the same ones."""
        return sums_of(FactBatch.concatenate(self.fresh)) if self.fresh else {}

    def sums(self) -> Sums:
        """Sums over everything."""
        return add_sums(self.settled_sums, self.fresh_sums)

    def split(self, offset: int) -> tuple[Tail, Tail]:
        """The facts before an offset, and those from it on."""
        if self.reach is None or self.reach.next_offset <= offset:
            return self, Tail()
        before: list[TailRows] = []
        after: list[TailRows] = []
        for batch in self.batches:
            rest = from_offset(batch.rows, offset)
            count = len(batch.rows) - len(rest)
            if count == 0:
                after.append(batch)
            elif not len(rest):
                before.append(batch)
            else:
                before.append(TailRows.of(_select(batch.rows, np.arange(count))))
                after.append(TailRows.of(rest))
        return Tail.of(before), Tail.of(after)

    def _plus(self, batch: TailRows) -> Tail:
        more = replace(
            self,
            batches=(*self.batches, batch),
            reach=batch.reach | self.reach,
            rows=self.rows + len(batch.rows),
            fresh=(*self.fresh, batch.rows.facts),
        )
        if sum(map(len, more.fresh)) < _FRESH_ROWS:
            return more
        return replace(more, settled_sums=more.sums(), fresh=())


def from_offset(rows: ArchivedFacts, offset: int) -> ArchivedFacts:
    """The facts from an offset on."""
    first = int(np.searchsorted(rows.fact_offsets, offset))
    return _select(rows, np.arange(first, len(rows))) if first else rows


def _select(rows: ArchivedFacts, index: Int64Array) -> ArchivedFacts:
    return ArchivedFacts(rows.facts.select(index), rows.fact_offsets[index], rows.source_offsets[index])
