"""Keeps the index level with the store: the first load, and what other processes publish later."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence

import structlog

from service import warm_up
from service.api.chain_state import Extent
from service.api.index import FactIndex
from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.errors import ArchiveError
from service.archive.segment import ChainKey, SegmentInfo

_LOAD_AT_ONCE = 16  # segments: a step costs as much as it has segments, and tells how far the load is
_log = structlog.get_logger()


class StoreFollower:
    """Keeps an index level with a store: with the segments there at the start, those that come, merge and go.

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
        self._looking = threading.Lock()
        self._seen: set[SegmentInfo] = set()
        self._extents: dict[ChainKey, Extent] = {}
        self._loaded = False
        index.catches_up_by(lambda: self.refresh(threading.Event()))

    def run(self, stop: threading.Event) -> None:
        """Follow the store until told to stop. A store that can't be read is tried again at each look."""
        warm_up.answers()
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
        """Bring the index level with the store; the first load ends early when told to stop.

        Raises:
            ArchiveError: the store or a segment can't be read; what was counted before it stays.
        """
        with self._looking:
            self._catalog.refresh()
            view = self._catalog.view
            for fault in view.faults:
                if fault not in self._faults:
                    _log.warning("chain_faulty", fault=fault)
            self._faults = view.faults
            extents = {key: _extent(chain) for key, chain in view.chains.items()}
            changed = {key: extent for key, extent in extents.items() if self._extents.get(key) != extent}
            listed = set(view.segments)
            known = set(self._index.segments())
            new = [info for info in view.segments if info not in known]
            if self._loaded:
                gone = self._seen - listed
                if new or gone or changed:
                    self._index.follow(new, gone, changed)
            elif not self._load(new, self._seen - listed, changed, stop):
                return
            self._seen, self._extents = listed, extents
            if not self._loaded:
                self._index.sweep(view.chains.keys())
                self._loaded = True
        self._index.loaded()

    def _load(
        self,
        new: Sequence[SegmentInfo],
        gone: Collection[SegmentInfo],
        extents: Mapping[ChainKey, Extent],
        stop: threading.Event,
    ) -> bool:
        """The first load, a few segments at a time; False where it was told to stop."""
        for done in range(0, len(new), _LOAD_AT_ONCE):
            if stop.is_set():
                return False
            self._index.loading_at(done, len(new))
            some = new[done : done + _LOAD_AT_ONCE]
            self._index.follow(some, (), {})
            self._seen.update(some)
        self._index.follow((), gone, extents)
        return True

    def waiting(self) -> Sequence[str]:
        """Why the index is behind the store; empty where it is not."""
        return () if self._trouble is None else (f"the store can't be followed: {self._trouble}",)


def _extent(chain: Chain) -> Extent:
    return Extent(chain.start_offset, chain.missing, tuple(map(str, chain.damaged_end)))
