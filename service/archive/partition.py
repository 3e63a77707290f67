"""One facts partition on its way into the store; no Kafka here."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future

import structlog

from service.archive.archived_facts import ArchivedFacts, between
from service.archive.catalog import Catalog
from service.archive.covered import resolve_overlaps
from service.archive.decode import FetchedFacts, decode
from service.archive.errors import AlreadyExists, ArchiveDisagrees, ArchiveError, UndecodableFact
from service.archive.listener import FactListener
from service.archive.segment import ChainKey, SegmentInfo, describe, read_table, segment_path
from service.archive.segment_writer import encode
from service.archive.tail import OpenTail, Sealed, SegmentLimits
from service.crash_points import CrashPoint, crash_point
from service.metrics import ArchiveMetrics
from service.stagger import first_wait

_log = structlog.get_logger()


class PartitionArchive:
    """Appends fetched facts to an open tail and turns it into segments.

    A segment is written in the background, one after the other, while further facts are appended: a disk that takes
    seconds to sync holds nobody up. At most one tail's worth waits behind the one that is written.

    Args:
        chain: which partition.
        next_offset: where its segments end so far.
        limits: when a tail becomes a segment.
        catalog: of the store where segments go.
        listener: is told of everything.
        metrics: counts it.
        writer: what segments are written by.
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
        writer: Executor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.chain = chain
        self.tail = OpenTail(next_offset, limits, clock, first_wait(limits.seconds, chain.partition))
        self.last_fact_time_ns: int | None = None
        self._catalog = catalog
        self._store = catalog.store
        self._listener = listener
        self._metrics = metrics
        self._writer = writer
        self._writing: Future[tuple[SegmentInfo, bool]] | None = None

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
            StoreError, SegmentError, ArchiveDisagrees, ChainBroken: as `publish`.
        """
        if self.tail.is_sealed and self._writing is None:
            self._write_on()  # what could not be written goes first, so that what waits stays bounded
        while rest := fetched.from_offset(self.next_offset):
            fitting = self.tail.room([len(value or b"") for value in rest.values])
            if fitting:
                self._append(rest.slice(0, fitting))
            if self.tail.full:
                self._write_on()
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
        """Begin to publish a tail that is full or old, and see how it went. Errors are those of `publish`."""
        if self._writing is not None and self._writing.done():
            self._settle()
        if self._writing is None and self.tail.due:
            self._write_on()

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
        self._settle()
        while self.tail.rows:
            self._write_on()
            self._settle()

    def drop_tail(self) -> None:
        """Forget what is not published; the next record to take is again the first after the last segment."""
        try:
            self._settle()
        except ArchiveError as error:
            _log.error("publishing_failed", chain=str(self.chain), error=str(error))
        if self.tail.rows:
            self.tail.clear()
            self._listener.tail_dropped(self.chain)

    def _write_on(self) -> None:
        """When the segment before is in the store, begin with the next; errors are those of `publish`."""
        self._settle()
        if self.tail.rows:  # another archiver's segment may have held all of it
            self._writing = self._writer.submit(self._write, self.tail.seal())
            if self._writing.done():
                self._settle()

    def _write(self, sealed: Sealed) -> tuple[SegmentInfo, bool]:
        """Publish a segment, in the background; returns what `_counts` says of it.

        Raises:
            AlreadyExists: another archiver's stands there.
            StoreError: the store does not work.
        """
        info = describe(self.chain, sealed.base_offset, sealed.end_offset, sealed.table, sealed.gap_end)
        started = time.perf_counter()
        data = encode(info, sealed.table)
        self._store.create(info.path, data)  # 4.
        crash_point(CrashPoint.AFTER_PUBLISH)
        self._metrics.published(self.chain.partition, len(data), time.perf_counter() - started)
        _log.info("segment_published", path=info.path, rows=info.rows, end_offset=info.end_offset)
        return info, self._counts(info)

    def _counts(self, info: SegmentInfo) -> bool:
        """Whether a segment is in the chain; then the listener is told of it."""
        self._catalog.refresh(self.chain)
        if info not in self._catalog.view.chain(self.chain).segments:
            return False
        self._listener.published(info)
        return True

    def _settle(self) -> None:
        """Wait for what is being written, and go on behind it; errors are those of `publish`."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        try:
            info, counts = writing.result()
        except AlreadyExists:
            info = self._find_winner()  # 5.
            counts = self._counts(info)
        if counts:
            self.tail.cut(info.end_offset)
        else:
            self._go_on_behind_chain()  # 6.

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
        self.tail.append(facts.table, size_bytes)
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

    def _find_winner(self) -> SegmentInfo:
        """The segment that stands where mine was to go. It may be my own: a write whose success was not heard of."""
        mine = self.tail.table()
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
