"""The facts of open tails in full, for calls that give facts one by one."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo


@dataclass(frozen=True, slots=True)
class OpenTail:
    """What of a chain is in no segment yet.

    Attributes:
        base_offset: where the last segment that was heard of ends; 0 before the first.
        tables: the facts, in order, as tables of `FACT_SCHEMA` that are not empty.
    """

    base_offset: int = 0
    tables: Sequence[pa.Table] = ()

    @property
    def first_offset(self) -> int:
        """Everything before it is in the store."""
        return self.tables[0]["fact_offset"][0].as_py() if self.tables else self.base_offset

    @property
    def end_offset(self) -> int:
        """Behind the last fact."""
        return _last_offset(self.tables[-1]) + 1 if self.tables else self.base_offset


class OpenFacts:
    """Hears of facts as an archiver consumes them, and holds those that are in no segment yet.

    The state is one immutable mapping that each change replaces: a reader takes it once.
    """

    def __init__(self) -> None:
        self._tails: Mapping[ChainKey, OpenTail] = {}
        self._changing = threading.Lock()

    def tails(self) -> Mapping[ChainKey, OpenTail]:
        """Of each chain that was heard of."""
        return self._tails

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """See `FactListener.appended`."""
        with self._changing:
            tail = self._tails.get(chain, OpenTail())
            self._tails = {**self._tails, chain: OpenTail(tail.base_offset, (*tail.tables, rows.table))}

    def published(self, info: SegmentInfo) -> None:
        """See `FactListener.published`."""
        with self._changing:
            tables = self._tails.get(info.chain, OpenTail()).tables
            # The archiver waits to add to the tail meanwhile, so of many tables only one is looked into.
            first = bisect_right(tables, info.end_offset - 1, key=_last_offset)
            rest = list(tables[first:])
            if rest:
                rest[0] = rest[0].filter(pc.field("fact_offset") >= info.end_offset)
            self._tails = {**self._tails, info.chain: OpenTail(info.end_offset, tuple(rest))}

    def tail_dropped(self, chain: ChainKey) -> None:
        """See `FactListener.tail_dropped`."""
        with self._changing:
            self._tails = {**self._tails, chain: OpenTail(self._tails.get(chain, OpenTail()).base_offset)}


def _last_offset(table: pa.Table) -> int:
    offset: int = table["fact_offset"][-1].as_py()
    return offset
