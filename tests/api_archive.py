"""An archive as the API sees it: a real store, an archiver's events, and merged segments."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from prometheus_client import CollectorRegistry

from schemas.fact import RequestFact
from service.api.app import create_app
from service.api.fact_log import FactLog
from service.api.follower import StoreFollower
from service.api.index import FactIndex
from service.api.open_facts import OpenFacts
from service.api.segment_reader import ParquetReader
from service.archive.catalog import Catalog
from service.archive.listener import FactListeners
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, describe, read_table
from service.archive.segment_writer import encode
from tests.histories import rows_of


class ApiArchive:
    """Facts in a store and in open tails, with an index and an app over them.

    Attributes:
        facts: everything appended, by chain; the place is the offset.
        app: answers from it.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self.store = open_store(str(folder))
        self.catalog = Catalog(self.store)
        self.index = FactIndex(ParquetReader(self.store), pages=folder / "index", window_rows=10_000_000)
        tails = OpenFacts()
        self.listener = FactListeners(self.index, tails)
        self.log = FactLog(self.catalog, tails)
        self.follower = StoreFollower(self.catalog, self.index, 1.0)
        self.facts: dict[ChainKey, list[RequestFact]] = {}
        self._tails: dict[ChainKey, list[pa.Table]] = {}
        self.follow()
        self.app = create_app(self.index, registry=CollectorRegistry(), log=self.log, **options)

    def append(self, chain: ChainKey, facts: Sequence[RequestFact]) -> None:
        """Further facts were consumed."""
        known = self.facts.setdefault(chain, [])
        rows = rows_of(facts, len(known))
        self._tails.setdefault(chain, []).append(rows.to_table())
        # First what is asked, then what is checked against: a reader may see facts before they count as known.
        known += facts
        self.listener.appended(chain, rows)

    def publish(self, chain: ChainKey) -> None:
        """The tail becomes a segment."""
        table = pa.concat_tables(self._tails.pop(chain))
        base = table["fact_offset"][0].as_py()
        info = describe(chain, base, base + table.num_rows, table)
        self.store.create(info.path, encode(info, table))
        self.listener.published(info)

    def merge(self, chain: ChainKey) -> None:
        """All segments become one: it replaces the first, then the others are deleted."""
        listed = {file.path: file for file in self.store.list()}
        infos = self._view(chain).segments
        tables = [read_table(self.store, info.path)[1] for info in infos]
        table = pa.concat_tables(tables)
        merged = describe(chain, infos[0].base_offset, infos[-1].end_offset, table)
        self.store.replace(merged.path, encode(merged, table), listed[merged.path].version)
        for info in infos[1:]:
            self.store.delete(info.path)

    def follow(self) -> None:
        """A look of the follower at the store."""
        self.follower.refresh(threading.Event())

    def _view(self, chain: ChainKey) -> Any:
        catalog = Catalog(self.store)
        catalog.refresh()
        return catalog.view.chain(chain)
