"""The archive role: from the facts topic into the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import structlog
from confluent_kafka import KafkaException

from service.archive.chain_end import Held
from service.archive.errors import StoreError
from service.archive.facts_consumer import FactsConsumer, Fetched
from service.archive.facts_offsets import FactsOffsets
from service.archive.listener import FactListener, FactListeners
from service.archive.opening import Opening
from service.archive.seat import Seat
from service.archive.status import ArchiveStatus
from service.archive.store import Store
from service.errors import TopicsError
from service.metrics import ArchiveMetrics
from service.settings import Settings
from service.topic_watch import TopicWatch
from service.topics import FoundTopic

_log = structlog.get_logger()

_MEASURE_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 1.0


class Archiver:
    """Puts every fact of the facts topic into the store, exactly once.

    Each partition goes on where its last segment ends, whatever the group's committed offsets say: they only show the
    lag. So a crash at any point loses nothing and doubles nothing: what is not in a segment is read again.

    Several archivers may run: a segment's name is its first offset, so one of them wins each segment and the others go
    on from its end.

    Where the topic is deleted and created again, the segments of what was consumed of the old one are completed, and
    the archive begins anew with the new generation.

    Args:
        settings: topic, limits of a segment, Kafka properties.
        bootstrap: Kafka's bootstrap servers.
        generation: of the facts topic, as it was found at start.
        partitions: of the facts topic, likewise.
        store: where segments go.
        metrics: counts them.
        listener: is told of facts and segments.
        watch: tells the topic's generation now; None where it can't change.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        generation: str,
        partitions: int,
        store: Store,
        metrics: ArchiveMetrics,
        listener: FactListener | None = None,
        watch: TopicWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._topic = FoundTopic(generation, partitions)
        self._watch = watch
        self._clock = clock
        self._seats: dict[int, Seat] = {}
        self._positions: dict[int, int] = {}  # of the partitions being read: what the consumer brings next
        self._ends: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._measured_at = 0.0
        self._lag_known = True
        self._heard_at = time.monotonic()
        self._status = ArchiveStatus("the store's segments are not listed yet", (), self._heard_at)
        self._consumer = FactsConsumer(settings, bootstrap)
        self._offsets = FactsOffsets(settings, bootstrap)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="archive-writer")
        self._opening = Opening(
            settings, store, self._offsets, listener or FactListeners(), metrics, self._writer, clock
        )

    def run(self, stop: threading.Event) -> None:
        """Archive until told to stop; then publish what is open.

        Raises:
            StoreError: at the end, what was open could not be published; it will be read from the topic again.
            KafkaException: the consumer is of no more use.
        """
        try:
            self._begin(stop)
            while not stop.is_set():
                if not self._turn():
                    self._leave(stop)
                    self._begin(stop)
            self._finish()
        finally:
            self._show()
            self._writer.shutdown()
            self._offsets.close()
            self._consumer.close()

    def status(self) -> ArchiveStatus:
        """The state after the last turn, from any thread."""
        return self._status

    def backlog(self) -> int:
        """The most facts of any partition that are in the topic now and not consumed yet.

        It asks the broker, from any thread. Partitions that stopped do not count: waiting for them would have no end.
        """
        try:
            ends = self._offsets.ends(range(self._topic.partitions))
        except KafkaException as error:
            _log.warning("backlog_unknown", error=str(error))
            ends = self._ends
        consumed = self._status.consumed(ends)
        return max([0, *(end - consumed.get(partition, 0) for partition, end in ends.items())])

    def _begin(self, stop: threading.Event) -> None:
        """Find out where to go on, waiting for the store and the broker as long as it takes.

        This is a beginning in docs/GUARANTEES.md; `Opening` has its steps 2 and 3.
        """
        while not stop.is_set():
            try:
                self._topic = self._look()  # 1.
                self._seats, self._ends = self._opening.open(self._topic)
            except (StoreError, TopicsError, KafkaException) as error:
                _log.warning("archive_not_started", error=str(error))
                self._status = ArchiveStatus(f"can't begin yet: {error}", (), self._heard_at)
                stop.wait(_ASK_AGAIN_SECONDS)
            else:
                self._read()  # 4.
                self._show()
                return

    def _look(self) -> FoundTopic:
        found = self._topic if self._watch is None else self._watch.look()
        self._heard_at = time.monotonic()
        if found is None:
            raise TopicsError(f"the topic {self._settings.facts_topic} does not exist; create it again")
        return found

    def _turn(self) -> bool:
        """Fetch, append, publish what is due; whether the topic is still the one it was.

        The numbered steps are those of a turn in docs/GUARANTEES.md.
        """
        fetched = self._consumer.fetch()  # 1.
        due = self._clock() - self._measured_at >= _MEASURE_SECONDS
        if self._watch is not None and (due or fetched.facts or fetched.ends or fetched.gone):
            try:
                if self._watch.look() != self._topic:  # 2.
                    return False
            except KafkaException as error:
                # What may be of another topic is not taken, but fetched again.
                _log.warning("topic_not_known", error=str(error))
                self._consumer.stop_reading(self._positions)
                self._positions.clear()
                fetched = Fetched()
        for partition, facts in fetched.facts.items():
            self._positions[partition] = facts.offsets[-1] + 1
        for partition, end in fetched.ends.items():
            self._positions[partition] = max(end, self._positions.get(partition, 0))
        for partition, seat in self._seats.items():
            seat.serve(fetched.facts.get(partition), fetched.ends.get(partition))  # 3. to 6.
        if fetched.gone or due:
            self._measure(fetched.gone)
        self._read()
        self._commit()  # 7.
        self._show()
        return True

    def _leave(self, stop: threading.Event) -> None:
        """The topic is gone, or another: what was consumed of it is in no other place, so it is published, in time."""
        _log.error("facts_topic_changed", topic=self._settings.facts_topic, generation=self._topic.generation)
        self._consumer.stop_reading(self._positions)
        self._positions.clear()
        while not stop.is_set():
            try:
                self._publish_open()
            except StoreError as error:
                _log.error("publishing_failed", error=str(error))
                with suppress(TopicsError, KafkaException):
                    self._look()  # only whether Kafka is there
                self._show()
                stop.wait(_ASK_AGAIN_SECONDS)
            else:
                self._seats.clear()
                self._committed.clear()
                return

    def _read(self) -> None:
        """Read on from where the seats want: behind a segment of another archiver, again after a pause, or no more."""
        for partition, seat in self._seats.items():
            wanted, position = seat.wants, self._positions.get(partition)
            if wanted is None:
                if position is not None:
                    self._consumer.stop_reading([partition])
                    del self._positions[partition]
            elif position is None or wanted > position:
                self._consumer.read_from({partition: wanted})
                self._positions[partition] = wanted

    def _measure(self, gone: list[int]) -> None:
        """Ask for the ends of the partitions, and look into those whose log lost the next offset."""
        self._measured_at = self._clock()
        for partition in gone:
            self._positions.pop(partition, None)  # where the log has the offset after all, it is read again
        try:
            self._ends = self._offsets.ends(self._seats)
            lows = self._offsets.begins(gone)
        except KafkaException as error:
            if self._lag_known:
                _log.warning("lag_unknown", error=str(error))
            self._lag_known = False
            return
        self._lag_known = True
        self._heard_at = time.monotonic()
        for partition, low in lows.items():
            seat = self._seats[partition]
            if seat.error is None:
                seat.check(Held(low, self._ends[partition]), accept_gap=self._settings.accept_gap)

    def _commit(self) -> None:
        """Show the group how far the archive is; nothing starts from it.

        On Kafka that is how far the store reaches: a lag of nothing means that everything is safe. The embedded broker
        forgets what is old, consumed or not, and everything at its end, so there the question is how far consuming is.
        """
        changed = {}
        for partition, seat in self._seats.items():
            if not seat.end_known:
                continue  # what another run has shown holds
            offset = seat.archive.next_offset if self._settings.embedded else seat.archive.published_end
            if self._committed.get(partition) != offset:
                changed[partition] = self._committed[partition] = offset
        if changed:
            self._consumer.commit(changed)

    def _finish(self) -> None:
        """Publish every open tail, and show it."""
        try:
            self._publish_open()
        finally:
            self._commit()

    def _publish_open(self) -> None:
        failed: StoreError | None = None
        for seat in self._seats.values():
            try:
                seat.finish()
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed

    def _show(self) -> None:
        if self._seats:
            partitions = tuple(seat.status(self._ends.get(partition)) for partition, seat in self._seats.items())
            self._status = ArchiveStatus(None, partitions, self._heard_at)
