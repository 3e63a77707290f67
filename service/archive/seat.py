"""A partition's place in an archiver: how it fares, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from service.archive.chain_end import Held
from service.archive.decode import FetchedFacts
from service.archive.errors import ArchiveError, OffsetsMissing, StoreError, UndecodableFact
from service.archive.partition import PartitionArchive
from service.archive.status import PartitionStatus
from service.metrics import ArchiveMetrics

_log = structlog.get_logger()

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class Seat:
    """Serves one partition and keeps its errors from the others.

    A store that does not work is tried again, ever more slowly; meanwhile nothing is consumed, so memory stays bounded.
    Any other error of the archive stops the partition for good: the operator has to look.

    Args:
        archive: the partition.
        metrics: counts failures.
        clock: seconds that never go back.
        end_known: whether the archive's offsets say where its segments end; a partition that can't find out is to be
            stopped.

    Attributes:
        trouble: why publishing failed; None where the last try worked.
        error: why the partition stopped; None unless it did.
    """

    def __init__(
        self, archive: PartitionArchive, metrics: ArchiveMetrics, clock: Callable[[], float], *, end_known: bool = True
    ) -> None:
        self.archive = archive
        self.end_known = end_known
        self.trouble: StoreError | None = None
        self.error: ArchiveError | None = None
        self._metrics = metrics
        self._clock = clock
        self._pause_seconds = 0.0
        self._retry_at = 0.0

    @property
    def wants(self) -> int | None:
        """The offset to read on from; None where nothing is to be read."""
        return self.archive.next_offset if self.trouble is None and self.error is None else None

    def serve(self, facts: FetchedFacts | None, end: int | None) -> None:
        """Take what was fetched and publish what is due.

        Args:
            facts: records, in offset order; None where none came.
            end: the partition's end, where it was reached.
        """
        if self.error is not None or (self.trouble is not None and self._clock() < self._retry_at):
            return
        try:
            if self.trouble is not None:
                self.archive.publish()
            if facts is not None:
                self.archive.consume(facts)
            if end is not None:
                self.archive.reached(end)
            self.archive.publish_if_due()
        except StoreError as error:
            self._hold(error)
        except ArchiveError as error:
            self.stop(error)
        else:
            self.trouble, self._pause_seconds = None, 0.0

    def check(self, held: Held, *, accept_gap: bool) -> None:
        """Go on where the topic holds the next offset; otherwise stop, or accept that what expired is missing.

        Where what was consumed before a gap can't be published yet, that is tried again before the gap is.
        """
        missing = held.missing(self.archive.chain, self.archive.next_offset)
        if missing is None:
            return
        if not (missing.expired and accept_gap):
            self.stop(missing)
            return
        try:
            self.archive.skip(held.low)
        except StoreError as error:
            self._hold(error)
        except ArchiveError as error:
            self.stop(error)

    def stop(self, error: ArchiveError) -> None:
        """End this partition. Facts before a record that is none, or before a gap, are good and still published."""
        chain = str(self.archive.chain)
        self.error = error
        _log.error("archive_partition_stopped", chain=chain, error=str(error))
        try:
            if isinstance(error, UndecodableFact | OffsetsMissing):
                self.archive.publish()
        except ArchiveError as unpublished:
            _log.error("publishing_failed", chain=chain, error=str(unpublished))
        self.archive.drop_tail()

    def finish(self) -> None:
        """Publish the open tail.

        Raises:
            StoreError: it can't be; its facts are still in the topic.
        """
        try:
            self.archive.publish()
        except StoreError:
            raise
        except ArchiveError as error:
            self.stop(error)

    def status(self, end_offset: int | None) -> PartitionStatus:
        """How it fares now, with the partition's last stable offset as last heard."""
        archive = self.archive
        return PartitionStatus(
            chain=archive.chain,
            next_offset=archive.next_offset,
            published_end=archive.published_end,
            tail_rows=archive.tail.rows,
            end_offset=end_offset,
            last_fact_time_ns=archive.last_fact_time_ns,
            trouble=None if self.trouble is None else str(self.trouble),
            error=None if self.error is None else str(self.error),
            end_known=self.end_known,
        )

    def _hold(self, error: StoreError) -> None:
        self.trouble = error
        self._pause_seconds = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds), LONGEST_PAUSE_SECONDS)
        self._retry_at = self._clock() + self._pause_seconds
        self._metrics.publishing_failed(self.archive.chain.partition)
        _log.error(
            "publishing_failed", chain=str(self.archive.chain), error=str(error), again_in_seconds=self._pause_seconds
        )
