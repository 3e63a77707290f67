"""The facts of open tails in full, for calls that give facts one by one."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo


class OpenFacts:
    """Hears of facts as an archiver consumes them, and holds those that are in no segment yet.

    The state is one immutable mapping that each change replaces: a reader takes it once.
    """

    def __init__(self) -> None:
        self._tables: Mapping[ChainKey, tuple[pa.Table, ...]] = {}
        self._changing = threading.Lock()

    def tables(self) -> Mapping[ChainKey, Sequence[pa.Table]]:
        """The facts of each chain after its last segment, in order, as tables of `FACT_SCHEMA` that are not empty."""
        return self._tables

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """See `FactListener.appended`."""
        with self._changing:
            self._tables = {**self._tables, chain: (*self._tables.get(chain, ()), rows.to_table())}

    def published(self, info: SegmentInfo) -> None:
        """See `FactListener.published`."""
        with self._changing:
            held = self._tables.get(info.chain, ())
            rest = (table.filter(pc.field("fact_offset") >= info.end_offset) for table in held)
            self._tables = {**self._tables, info.chain: tuple(table for table in rest if table.num_rows)}

    def tail_dropped(self, chain: ChainKey) -> None:
        """See `FactListener.tail_dropped`."""
        with self._changing:
            self._tables = {**self._tables, chain: ()}
