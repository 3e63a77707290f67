"""An archive as the API sees it: a real store, an archiver's events, and merged segments."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from prometheus_client import CollectorRegistry

from litehit.facts import FactBatch
from schemas.fact import RequestFact
from service.api.app import create_app
from service.api.fact_log import FactLog
from service.api.follower import StoreFollower
from service.api.index import FactIndex
from service.api.open_facts import OpenFacts
from service.api.segment_reader import ParquetReader
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog
from service.archive.listener import FactListeners
from service.archive.merge import merge
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, describe
from service.archive.segment_writer import encode


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
        self._ends: dict[ChainKey, int] = {}
        self.follow()
        self.app = create_app(self.index, registry=CollectorRegistry(), log=self.log, **options)

    def append(self, chain: ChainKey, facts: Sequence[RequestFact]) -> None:
        """Further facts were consumed."""
        # Noted first: a reader may be answered about them at once.
        self.facts.setdefault(chain, []).extend(facts)
        self.append_rows(chain, FactBatch.from_facts(facts))

    def append_rows(self, chain: ChainKey, facts: FactBatch) -> None:
        """Further facts, as columns, which are not noted one by one."""
        first = self._ends.get(chain, 0)
        offsets = np.arange(first, first + len(facts))
        self._ends[chain] = first + len(facts)
        rows = ArchivedFacts(facts, offsets, offsets)
        self._tails.setdefault(chain, []).append(rows.table)
        self.listener.appended(chain, rows)

    def publish(self, chain: ChainKey) -> None:
        """The tail becomes a segment."""
        table = pa.concat_tables(self._tails.pop(chain))
        base = table["fact_offset"][0].as_py()
        info = describe(chain, base, base + table.num_rows, table)
        self.store.create(info.path, encode(info, table))
        self.listener.published(info)

    def merge(self, chain: ChainKey) -> None:
        """All segments become one, as the archiver's upkeep does it, unknown to the app."""
        catalog = Catalog(self.store)
        catalog.refresh()
        segments = catalog.view.chain(chain).segments
        if len(segments) > 1:
            merge(catalog, segments)

    def follow(self) -> None:
        """A look of the follower at the store."""
        self.follower.refresh(threading.Event())
