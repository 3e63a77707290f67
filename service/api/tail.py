"""The open tail: facts that no summed segment holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from litehit.curve_table import CurveTable
from litehit.curves import Int64Array
from service.api.reach import Reach
from service.api.rows import FactRows

_CHUNK_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class TailChunk:
    """Facts next to each other, at least one.

    Attributes:
        rows: the facts.
        offsets: int64[R], ascending.
    """

    rows: FactRows
    offsets: Int64Array

    @cached_property
    def reach(self) -> Reach:
        """How far they go."""
        times = self.rows.times_ns
        return Reach(int(self.offsets[-1]) + 1, int(times.min()), int(times.max()))

    @cached_property
    def sums(self) -> CurveTable:
        """Summed by group."""
        return self.rows.sums()

    def split(self, offset: int) -> tuple[TailChunk | None, TailChunk | None]:
        """The facts before an offset, and those from it on; None where there are none."""
        first = int(np.searchsorted(self.offsets, offset))
        if first == 0:
            return None, self
        if first == len(self.offsets):
            return self, None
        before, after = np.arange(first), np.arange(first, len(self.offsets))
        return tuple(TailChunk(self.rows.select(part), self.offsets[part]) for part in (before, after))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Tail:
    """Facts in order of their offsets. It never changes: what adds to it makes a new one.

    Attributes:
        chunks: the facts. Few facts are joined with the next ones, so that chunks are few, and a fact is
            copied a few times.
        reach: how far they go; None without any.
        facts: how many they are.
    """

    chunks: tuple[TailChunk, ...] = ()
    reach: Reach | None = None
    facts: int = 0

    @classmethod
    def of(cls, chunks: Iterable[TailChunk]) -> Tail:
        """A tail of these chunks."""
        tail = cls()
        for chunk in chunks:
            tail = tail.plus(chunk)
        return tail

    def plus(self, chunk: TailChunk) -> Tail:
        """With further facts at its end."""
        joined, kept = [chunk], len(self.chunks)
        size = len(chunk.offsets)
        while kept and len(self.chunks[kept - 1].offsets) <= size and size < _CHUNK_ROWS:
            kept -= 1
            joined.append(self.chunks[kept])
            size += len(joined[-1].offsets)
        if len(joined) > 1:
            joined.reverse()
            last = TailChunk(
                FactRows.concatenate([one.rows for one in joined]), np.concatenate([one.offsets for one in joined])
            )
        else:
            last = chunk
        reach = chunk.reach if self.reach is None else self.reach | chunk.reach
        return Tail((*self.chunks[:kept], last), reach, self.facts + len(chunk.offsets))

    def split(self, offset: int) -> tuple[Tail, Tail]:
        """The facts before an offset, and those from it on."""
        parts = [chunk.split(offset) for chunk in self.chunks]
        return Tail.of(one for one, _ in parts if one), Tail.of(one for _, one in parts if one)
