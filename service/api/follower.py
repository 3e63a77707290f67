"""Keeps the index level with the store: the first load, and what other processes publish later."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import structlog

from service.api.index import FactIndex
from service.archive.catalog import Catalog
from service.archive.errors import ArchiveError

_log = structlog.get_logger()


class StoreFollower:
    """Sums the segments of a store into an index, those there at the start and those that come.

    It also runs beside an archiver of the same process: a segment that the archiver announced is known by then.

    Args:
        catalog: the store's segments.
        index: gets them; it answers once those of the start are summed.
        follow_seconds: time from one look at the store to the next.
    """

    def __init__(self, catalog: Catalog, index: FactIndex, follow_seconds: float) -> None:
        self._catalog = catalog
        self._index = index
        self._follow_seconds = follow_seconds
        self._trouble: str | None = None
        self._faults: tuple[str, ...] = ()

    def run(self, stop: threading.Event) -> None:
        """Follow the store until told to stop. A store that can't be read is tried again at each look."""
        while not stop.is_set():
            try:
                self.refresh(stop)
            except ArchiveError as error:
                if str(error) != self._trouble:
                    _log.error("store_not_followed", error=str(error))
                self._trouble = str(error)
            else:
                self._trouble = None
            stop.wait(self._follow_seconds)

    def refresh(self, stop: threading.Event) -> None:
        """Sum what is new in the store, in order; ends early when told to stop.

        Raises:
            ArchiveError: the store or a segment can't be read; what was summed before it stays.
        """
        self._catalog.refresh()
        view = self._catalog.view
        for fault in view.faults:
            if fault not in self._faults:
                _log.warning("chain_faulty", fault=fault)
        self._faults = view.faults
        known = set(self._index.segments())
        new = [info for info in view.segments if info not in known]
        for done, info in enumerate(new):
            if stop.is_set():
                return
            self._index.loading_at(done, len(new))
            self._index.published(info)
        self._index.loaded()

    def waiting(self) -> Sequence[str]:
        """Why the index is behind the store; empty where it is not."""
        return () if self._trouble is None else (f"the store can't be followed: {self._trouble}",)
