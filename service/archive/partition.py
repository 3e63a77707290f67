"""One facts partition on its way into the store; no Kafka here."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import structlog

from service.archive.archived_facts import ArchivedFacts, between
from service.archive.catalog import Catalog
from service.archive.covered import resolve_overlaps
from service.archive.decode import FetchedFacts, decode
from service.archive.errors import AlreadyExists, ArchiveDisagrees, UndecodableFact
from service.archive.listener import FactListener
from service.archive.segment import ChainKey, SegmentInfo, describe, read_table, segment_path
from service.archive.segment_writer import encode
from service.archive.tail import OpenTail, SegmentLimits
from service.crash_points import CrashPoint, crash_point
from service.metrics import ArchiveMetrics

_log = structlog.get_logger()


class PartitionArchive:
    """Appends fetched facts to an open tail and turns it into segments.

    Args:
        chain: which partition.
        next_offset: where its segments end so far.
        limits: when a tail becomes a segment.
        catalog: of the store where segments go.
        listener: is told of everything.
        metrics: counts it.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        chain: ChainKey,
        next_offset: int,
        limits: SegmentLimits,
        catalog: Catalog,
        listener: FactListener,
        metrics: ArchiveMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.chain = chain
        self.tail = OpenTail(next_offset, limits, clock)
        self.last_fact_time_ns: int | None = None
        self._catalog = catalog
        self._store = catalog.store
        self._listener = listener
        self._metrics = metrics

    @property
    def next_offset(self) -> int:
        """Everything before it is consumed; a record before it is not taken again."""
        return self.tail.end_offset

    @property
    def published_end(self) -> int:
        """Everything before it is in the store."""
        return self.tail.base_offset

    def consume(self, fetched: FetchedFacts) -> None:
        """Take records in offset order, publishing whenever the tail is full.

        After an error `next_offset` says how many were taken.

        Raises:
            UndecodableFact: a record is no fact; those before it are taken.
            StoreError, SegmentError, ArchiveDisagrees: as `publish`.
        """
        while rest := fetched.from_offset(self.next_offset):
            fitting = self.tail.room([len(value or b"") for value in rest.values])
            if fitting:
                self._append(rest.slice(0, fitting))
            if self.tail.full:
                self.publish()
            fetched = rest

    def reached(self, offset: int) -> None:
        """The partition holds no further fact before this offset; behind the last fact lie transaction markers.

        They belong to the segment: an idle partition whose records all expire then begins exactly where its archive
        ends, so nothing is taken for missing.
        """
        self.tail.reached(offset)

    def skip(self, offset: int) -> None:
        """Go on at this offset, since the facts before it can't be had any more; the next segment will say so.

        Errors are those of `publish`: a gap stands at the beginning of a segment, so what was consumed goes first.
        """
        self.publish()
        missing = offset - self.next_offset
        if missing > 0:  # otherwise another archiver has published what is gone here
            self.tail.skip(offset)
            self._metrics.gap_accepted(self.chain.partition, missing)
            _log.error("gap_accepted", chain=str(self.chain), missing_offsets=missing, goes_on_at=offset)

    def publish_if_due(self) -> None:
        """Publish a tail that is full or old. Errors are those of `publish`."""
        if self.tail.due:
            self.publish()

    def publish(self) -> None:
        """Put the whole tail into the store: steps 4 to 6 of a turn in docs/GUARANTEES.md.

        Where another archiver has published the next segment already, that one counts: what it holds leaves the tail,
        `next_offset` moves behind it, and the rest of the tail is published after it. Likewise where these offsets were
        archived long ago, and merged, or expired since, so that the name was free again.

        Raises:
            ChainBroken: what was archived long ago does not agree with it.
            StoreError: the store does not work; the tail stays, and publishing can be tried again.
            SegmentError: the other archiver's segment can't be read.
            ArchiveDisagrees: the other archiver's segment differs from what was consumed here.
        """
        while self.tail.rows:
            table = self.tail.table()
            info = describe(self.chain, self.tail.base_offset, self.tail.end_offset, table, self.tail.gap_end)
            started = time.perf_counter()
            data = encode(info, table)
            try:
                self._store.create(info.path, data)  # 4.
            except AlreadyExists:
                info = self._find_winner(table)  # 5.
            else:
                crash_point(CrashPoint.AFTER_PUBLISH)
                self._metrics.published(self.chain.partition, len(data), time.perf_counter() - started)
                _log.info("segment_published", path=info.path, rows=info.rows, end_offset=info.end_offset)
            self._catalog.refresh(self.chain)
            if info in self._catalog.view.chain(self.chain).segments:
                self.tail.cut(info.end_offset)
                self._listener.published(info)
            else:
                self._go_on_behind_chain()  # 6.

    def drop_tail(self) -> None:
        """Forget what is not published; the next record to take is again the first after the last segment."""
        if self.tail.rows:
            self.tail.clear()
            self._listener.tail_dropped(self.chain)

    def _append(self, fetched: FetchedFacts) -> None:
        try:
            facts = decode(fetched, self.chain.partition)
        except UndecodableFact as error:
            if error.index:
                self._append(fetched.slice(0, error.index))
            raise UndecodableFact(
                error.index,
                f"{self.chain}, offset {fetched.offsets[error.index]}: {error.reason}; only lanes of this release may "
                f"write to the topic",
            ) from None
        self._add(facts, sum(len(value or b"") for value in fetched.values))

    def _add(self, facts: ArchivedFacts, size_bytes: int) -> None:
        self.tail.append(facts.to_table(), size_bytes)
        latest = int(facts.facts.timestamps_ns.max())
        self.last_fact_time_ns = latest if self.last_fact_time_ns is None else max(self.last_fact_time_ns, latest)
        self._metrics.consumed(self.chain.partition, len(facts))
        self._listener.appended(self.chain, facts)

    def _go_on_behind_chain(self) -> None:
        """The offsets at which the tail begins are in the store otherwise; go on where the chain ends."""
        resolve_overlaps(self._catalog, self.chain)
        chain = self._catalog.view.chain(self.chain)
        _log.warning(
            "archive_was_behind", chain=str(self.chain), offset=self.published_end, goes_on_at=chain.end_offset
        )
        self._listener.tail_dropped(self.chain)
        for info in chain.segments:
            if info.end_offset > self.published_end:
                self._listener.published(info)
        self.tail.cut(chain.next_offset)
        if self.tail.rows:
            self._listener.appended(self.chain, ArchivedFacts.from_table(self.tail.table()))

    def _find_winner(self, mine: pa.Table) -> SegmentInfo:
        """The segment that stands where mine was to go. It may be my own: a write whose success was not heard of."""
        path = segment_path(self.chain, self.tail.base_offset)
        winner, theirs = read_table(self._store, path)
        self._metrics.race_lost(self.chain.partition)
        _log.info("segment_race_lost", path=path, end_offset=winner.end_offset)
        if winner.expired_rows is not None:
            return winner
        # What one of the two could not have any more the other may hold.
        first = max(winner.first_offset, self.tail.gap_end or 0)
        common = min(winner.end_offset, self.tail.end_offset)
        if not between(mine, first, common).equals(between(theirs, first, common)):
            raise ArchiveDisagrees(path)
        return winner
