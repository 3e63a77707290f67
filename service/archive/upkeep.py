"""The archive's upkeep: merges small segments into large ones and removes old ones, beside the archiver."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable

import structlog

from litehit.time_units import NS_PER_S
from service.archive.catalog import Catalog
from service.archive.covered import delete_superseded
from service.archive.errors import ArchiveError, Changed, NotFound, StoreError
from service.archive.merge import merge
from service.archive.merge_rule import MergeRule
from service.archive.retention import remove_older
from service.archive.segment import ChainKey, SegmentInfo
from service.archive.store import Store
from service.metrics import UpkeepMetrics
from service.settings import Settings

_log = structlog.get_logger()

LONGEST_PAUSE_SECONDS = 600.0


class Upkeep:
    """Looks after the segments of a facts topic, of all its generations.

    Several may run at once, in several processes: of two that would change a segment one wins, and the other finds that
    out before it has deleted anything. The archiver is never waited for, nor made to wait.

    Args:
        settings: topic, which segments are merged, how old they get.
        store: where they are.
        metrics: counts what is done.
        clock: seconds that never go back.
        now_ns: nanoseconds since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        metrics: UpkeepMetrics,
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._rule = MergeRule(settings.compact_rows, settings.compact_parts)
        self._catalog = Catalog(store, settings.facts_topic)
        self._metrics = metrics
        self._clock = clock
        self._now_ns = now_ns
        self._seen: dict[SegmentInfo, float] = {}
        self._told: dict[ChainKey, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Look, and look again, until told to stop. A store that does not work is asked ever more seldom."""
        pause = self._settings.upkeep_seconds
        while not stop.is_set():
            try:
                self.look(stop)
            except StoreError as error:
                pause = max(self._settings.upkeep_seconds, min(2 * pause, LONGEST_PAUSE_SECONDS))
                self._metrics.failed()
                self._metrics.looked(well=False)
                _log.error("upkeep_failed", error=str(error), again_in_seconds=pause)
            else:
                pause = self._settings.upkeep_seconds
            stop.wait(pause)

    def look(self, stop: threading.Event) -> None:
        """List the store once and do what is to be done; ends early, between two segments, when told to stop.

        A chain with segments that can't be read, or contradict each other, is told in the log, and left.

        Raises:
            StoreError: the store can't be used.
        """
        self._catalog.refresh()
        self._show()
        now = self._clock()
        self._seen = {info: self._seen.get(info, now) for info in self._catalog.view.segments}
        self._told = {key: told for key, told in self._told.items() if key in self._catalog.view.chains}
        for key in sorted(self._catalog.view.chains):
            if stop.is_set():
                return
            try:
                self._keep(key, stop)
            except (Changed, NotFound) as error:
                _log.info("upkeep_overtaken", chain=str(key), error=str(error))
            except StoreError:
                raise
            except ArchiveError as error:
                self._metrics.failed()
                if self._told.get(key) != str(error):
                    _log.error("chain_not_kept", chain=str(key), error=str(error))
                self._told[key] = str(error)
            else:
                self._told.pop(key, None)
        self._metrics.looked(well=not self._told)

    def _keep(self, key: ChainKey, stop: threading.Event) -> None:
        delete_superseded(self._catalog, key)
        if self._settings.retention_seconds is not None:
            self._remove(key, self._now_ns() - int(self._settings.retention_seconds * NS_PER_S))
        for parts in list(self._rule.choose(self._catalog.view.chain(key), self._settled)):
            if stop.is_set():
                return
            started = time.perf_counter()
            whole = merge(self._catalog, parts)
            self._metrics.merged(key.partition, len(parts), whole.rows, time.perf_counter() - started)
            _log.info("segments_merged", path=whole.path, segments=len(parts), rows=whole.rows, end=whole.end_offset)

    def _remove(self, key: ChainKey, before_ns: int) -> None:
        removed = remove_older(self._catalog, key, before_ns)
        if removed.segments:
            self._metrics.removed(key.partition, removed.segments, removed.facts)
            begins = self._catalog.view.chain(key).start_offset
            _log.info(
                "facts_expired", chain=str(key), segments=removed.segments, facts=removed.facts, begins_at_offset=begins
            )

    def _settled(self, info: SegmentInfo) -> bool:
        return self._clock() - self._seen.get(info, self._clock()) >= self._settings.compact_after_seconds

    def _show(self) -> None:
        segments: defaultdict[int, int] = defaultdict(int)
        size_bytes: defaultdict[int, int] = defaultdict(int)
        for key, chain in self._catalog.view.chains.items():
            files = [file for info in chain.segments if (file := self._catalog.file(info.path)) is not None]
            segments[key.partition] += len(files)
            size_bytes[key.partition] += sum(file.size for file in files)
        self._metrics.stored(segments, size_bytes)
