"""The open tail: facts of one partition that were consumed and are in no segment yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.archive.archived_facts import FACT_SCHEMA
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When a tail becomes a segment.

    Attributes:
        rows: facts.
        size_bytes: bytes of the facts as they came in.
        seconds: age of the tail's first fact in this process.
    """

    rows: int
    size_bytes: int
    seconds: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits that the settings name."""
        return cls(settings.segment_rows, settings.segment_bytes, settings.segment_seconds)


@dataclass(frozen=True, slots=True)
class Sealed:
    """The first part of a tail, to which nothing is added any more: the next segment.

    Attributes:
        base_offset, end_offset, gap_end: see `OpenTail`.
        table: its facts, at least one.
        size_bytes: what they came in as.
    """

    base_offset: int
    end_offset: int
    gap_end: int | None
    table: pa.Table
    size_bytes: int


class OpenTail:
    """Facts in the order of their offsets, kept as Arrow tables, which are compact and ready to be written.

    What is written next is sealed; limits are those of what came after. Where another archiver's segment ends amid what
    was sealed, the rest counts as one with what came after, and may be more than the limits allow.

    Args:
        base_offset: where the last segment ends.
        limits: when it becomes a segment.
        clock: seconds that never go back.
        first_seconds: instead of the limits' seconds until it has become a segment for the first time.

    Attributes:
        base_offset: first offset of the segment it will be.
        end_offset: everything from the base to here was consumed; facts need not stand on every offset.
        gap_end: the offsets from the base to here can't be had any more; None where nothing is missing.
    """

    def __init__(
        self, base_offset: int, limits: SegmentLimits, clock: Callable[[], float], first_seconds: float
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._seconds = first_seconds
        self._start(base_offset, base_offset)

    def _start(self, base_offset: int, end_offset: int, gap_end: int | None = None) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.gap_end = gap_end
        self._sealed: Sealed | None = None
        self._open()

    def _open(self) -> None:
        self._rows = 0
        self._size_bytes = 0
        self._tables: list[pa.Table] = []
        self._opened = 0.0

    @property
    def rows(self) -> int:
        """Facts in it, sealed or not."""
        return self._rows + (self._sealed.table.num_rows if self._sealed else 0)

    @property
    def size_bytes(self) -> int:
        """Bytes of these as they came in."""
        return self._size_bytes + (self._sealed.size_bytes if self._sealed else 0)

    @property
    def is_sealed(self) -> bool:
        """Whether a part of it is sealed."""
        return self._sealed is not None

    def room(self, sizes: Sequence[int]) -> int:
        """How many records of these sizes fit: the one that reaches a limit is the last."""
        reaching = int(np.searchsorted(np.cumsum(sizes), self._limits.size_bytes - self._size_bytes)) + 1
        return 0 if self.full else min(len(sizes), self._limits.rows - self._rows, reaching)

    @property
    def full(self) -> bool:
        """It reached a limit of rows or bytes and takes no more."""
        return self._rows >= self._limits.rows or self._size_bytes >= self._limits.size_bytes

    @property
    def due(self) -> bool:
        """What is not sealed should become a segment now."""
        return self.full or (self._rows > 0 and self._clock() - self._opened >= self._seconds)

    def append(self, table: pa.Table, size_bytes: int) -> None:
        """Add facts (of `FACT_SCHEMA`, at least one, past all before) that came in as so many bytes."""
        if not self._rows:
            self._opened = self._clock()
        self._tables.append(table)
        self._rows += table.num_rows
        self._size_bytes += size_bytes
        self.end_offset = table["fact_offset"][-1].as_py() + 1

    def reached(self, offset: int) -> None:
        """No fact stands before this offset that was not appended."""
        self.end_offset = max(self.end_offset, offset)

    def skip(self, offset: int) -> None:
        """What stands before this offset can't be had any more; only for a tail without rows."""
        self._start(self.base_offset, offset, offset)

    def table(self) -> pa.Table:
        """Everything in it."""
        tables = [self._sealed.table, *self._tables] if self._sealed else self._tables
        return pa.concat_tables(tables) if tables else FACT_SCHEMA.empty_table()

    def seal(self) -> Sealed:
        """The part that is sealed already, or else all of it (at least one fact)."""
        if self._sealed is None:
            self._sealed = Sealed(self.base_offset, self.end_offset, self.gap_end, self.table(), self._size_bytes)
            self._seconds = self._limits.seconds
            self._open()
        return self._sealed

    def cut(self, offset: int) -> None:
        """A segment ends here: forget what it holds; the rest, if any, is a tail from here on, with nothing sealed."""
        if self._sealed is not None and offset == self._sealed.end_offset:
            self.base_offset, self.gap_end, self._sealed = offset, None, None
            return
        whole, size_bytes = self.table(), self.size_bytes
        rest = whole.filter(pc.greater_equal(whole["fact_offset"], offset))
        gap_end = self.gap_end if self.gap_end is not None and self.gap_end > offset else None
        self._start(offset, max(offset, self.end_offset), gap_end)
        if rest.num_rows:
            end_offset = self.end_offset
            self.append(rest, size_bytes * rest.num_rows // whole.num_rows)
            self.reached(end_offset)

    def clear(self) -> None:
        """Forget everything since the base."""
        self._start(self.base_offset, self.base_offset)
