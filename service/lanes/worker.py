"""The lanes of one process: consume, feed each partition's lane, hand over, again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from litehit.registry import Registry
from service import formats
from service.errors import BatchAborted, CannotRestore, ProducerFailed, Undeliverable
from service.lanes.at_least_once import AtLeastOnce
from service.lanes.counts import LaneCounts
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.lane import Lane, LaneTargets
from service.lanes.membership import Membership
from service.lanes.requests_consumer import committed_offset, read_from, requests_consumer, source_record, watermarks
from service.lanes.restore import plan_restore
from service.lanes.seat import Phase, Seat
from service.lanes.status import LanesStatus
from service.lanes.transaction import MicroBatch, Transaction
from service.metrics import LanesMetrics
from service.records import OutputRecord, SourceRecord
from service.settings import ProcessingGuarantee, Settings
from service.topics import TopicLayout

log = structlog.get_logger()

_CONSUME_SECONDS = 0.05
_STATUS_SECONDS = 0.2
_BACKOFF_SECONDS = (0.0, 0.1, 0.5, 1.0, 5.0)  # before a seat begins again, by consecutive failures


class LanesWorker:
    """One member of the lanes' consumer group, working in the thread that calls `run`.

    Args:
        settings: topics, group, limits.
        bootstrap: Kafka's bootstrap servers.
        layout: the topics as they were found at start.
        registry: the instances that are known.
        metrics: counts what is handed over.
        hold: on the embedded broker, True while facts must not come faster; the worker then only polls.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        layout: TopicLayout,
        registry: Registry,
        metrics: LanesMetrics,
        hold: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._topic = settings.requests_topic
        self._layout = layout
        self._registry = registry
        self._metrics = metrics
        self._hold = hold
        self._holding = False
        self._stop = threading.Event()
        self._format = formats.get("native")
        self._targets = LaneTargets(settings.facts_topic, settings.dead_letters_topic, settings.dead_letter_max_bytes)
        self._consumer = requests_consumer(settings, bootstrap, self._note_statistics)
        self._membership = Membership(self._consumer)
        self._transaction = self._choose_transaction(bootstrap)
        self._seats: dict[int, Seat] = {}
        self._assigned = False
        self._failures = 0
        self._begin_after = 0.0
        self._status = LanesStatus(assigned=False, lanes=())
        self._status_at = 0.0

    def status(self) -> LanesStatus:
        """The lanes as they were a moment ago; safe from any thread."""
        return self._status

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; a batch that was begun is finished first.

        Raises:
            ProducerFailed: fenced by a newer process, or the producer is of no more use.
            KafkaException: the consumer is of no more use.
        """
        self._stop = stop
        try:
            self._transaction.open()
            self._consumer.subscribe(
                [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
            while not stop.is_set():
                self._follow_hold()
                messages = self._consumer.consume(self._settings.batch_records, _CONSUME_SECONDS)
                self._handle(messages)
                self._begin_waiting()
                self._publish_status(idle=not messages)
        finally:
            self._transaction.close()
            self._consumer.close()
            self._seats.clear()
            self._publish_status(idle=True)

    def _choose_transaction(self, bootstrap: str) -> Transaction:
        settings = self._settings
        if settings.embedded or settings.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE:
            return AtLeastOnce(settings, bootstrap, self._consumer, self._is_stopping)
        return ExactlyOnce(settings, bootstrap, self._membership, self._is_stopping)

    def _is_stopping(self) -> bool:
        return self._stop.is_set()

    # What the group gives and takes. The callbacks run inside `consume`, so never amid a batch.

    def _on_assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._membership.joined()
        self._assigned = True
        # Where to read from takes questions to the broker, which must not hold up the other lanes: the partition is
        # taken paused, and begun from the loop.
        places = [TopicPartition(self._topic, partition.partition, 0) for partition in partitions]
        consumer.incremental_assign(places)
        if places:
            consumer.pause(places)
        for place in places:
            self._seats[place.partition] = Seat(place.partition)
        log.info("partitions_assigned", partitions=[place.partition for place in places])

    def _on_revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._release("partitions_revoked", partitions)

    def _on_lost(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._release("partitions_lost", partitions)

    def _release(self, event: str, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self._seats.pop(partition.partition, None)
        log.info(event, partitions=[partition.partition for partition in partitions])

    # One round of the loop.

    def _handle(self, messages: Iterable[Message]) -> None:
        batches: dict[int, list[SourceRecord]] = {}
        ends: dict[int, int] = {}
        for message in messages:
            if message.error() is not None:
                self._note_event(message, ends)
                continue
            record = source_record(message)
            seat = self._seats.get(record.partition)
            # What came in for a partition that is gone, or must begin again, is read again by whoever does.
            if seat is not None and seat.phase is Phase.READING:
                batches.setdefault(record.partition, []).append(record)
        if batches:
            self._process(batches)
        for partition, offset in ends.items():
            if partition in self._seats:
                self._seats[partition].reached_end(offset)

    def _process(self, batches: dict[int, list[SourceRecord]]) -> None:
        began = time.monotonic()
        outputs: list[OutputRecord] = []
        positions: dict[int, int] = {}
        ledgers: dict[int, LaneCounts] = {}
        for partition, records in batches.items():
            seat = self._seats[partition]
            try:
                output = seat.process(records)
            except Exception as error:
                # Whatever leaves a lane is a fault of ours, never a dead letter: this lane halts, the others go on.
                log.exception("lane_failed", partition=partition, first_offset=records[0].offset)
                self._stop_seat(seat, f"{type(error).__name__} at or after {records[0].source}: {error}")
                continue
            if output is not None:
                outputs += output.facts
                outputs += output.dead_letters
                positions[partition] = records[-1].offset + 1
                ledgers[partition] = output.counts
        if not positions:
            return
        try:
            self._transaction.commit(MicroBatch(outputs, self._topic, self._layout.requests_generation, positions))
        except BatchAborted as error:
            self._rebuild(positions, error)
            return
        self._failures = 0
        for partition, counts in ledgers.items():
            self._seats[partition].handed_over(counts)
            self._metrics.handed_over(partition, counts)
        self._metrics.batch(sum(counts.consumed for counts in ledgers.values()), time.monotonic() - began)

    def _rebuild(self, partitions: Iterable[int], error: BatchAborted) -> None:
        """After an abort the touched lanes are ahead of the offsets: none of them goes on."""
        self._metrics.aborted()
        log.warning("batch_aborted", partitions=sorted(partitions), error=str(error))
        for partition in partitions:
            seat = self._seats[partition]
            if isinstance(error, Undeliverable) and error.partition == partition:
                self._stop_seat(
                    seat, f"{error}; raise max.message.bytes of the topic, or see why it refuses the record"
                )
            else:
                self._send_waiting(seat)
        self._back_off()

    def _send_waiting(self, seat: Seat) -> None:
        seat.wait()
        self._consumer.pause([TopicPartition(self._topic, seat.partition)])

    def _stop_seat(self, seat: Seat, error: str) -> None:
        seat.stop(error)
        self._consumer.pause([TopicPartition(self._topic, seat.partition)])
        log.error("lane_stopped", partition=seat.partition, error=error)

    def _back_off(self) -> None:
        delay = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS) - 1)]
        self._failures += 1
        self._begin_after = time.monotonic() + delay

    def _begin_waiting(self) -> None:
        """Begin the seats that wait, one question to the broker at a time, so that no lane waits for another's."""
        if time.monotonic() < self._begin_after:
            return
        seat = next((seat for seat in self._seats.values() if seat.phase is Phase.WAITING), None)
        if seat is None:
            return
        source = f"{self._topic}/{seat.partition}"
        try:
            low, seat.end_offset = watermarks(self._consumer, self._topic, seat.partition)
            committed = committed_offset(self._consumer, self._topic, seat.partition)
            plan = plan_restore(source, self._layout.requests_generation, committed, low, seat.end_offset)
            read_from(self._consumer, self._topic, seat.partition, plan.start)
        except CannotRestore as error:
            self._stop_seat(seat, str(error))
            return
        except KafkaException as error:
            log.warning("lane_waits", partition=seat.partition, error=error.args[0].str())
            self._back_off()
            return
        seat.begin(plan, Lane(seat.partition, self._registry, self._format, self._targets))
        if self._holding:
            self._consumer.pause([TopicPartition(self._topic, seat.partition)])
        log.info("lane_begun", partition=seat.partition, start=plan.start, target=plan.target, end=seat.end_offset)

    def _note_event(self, message: Message, ends: dict[int, int]) -> None:
        error = message.error()
        assert error is not None  # noqa: S101
        partition, offset = message.partition(), message.offset()
        seat = self._seats.get(partition) if partition is not None else None
        if error.code() == KafkaError._PARTITION_EOF:
            if seat is not None and offset is not None:
                ends[seat.partition] = offset
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            # The log does not hold the offset any more. Beginning again finds out what it does hold, and says so.
            if seat is not None and seat.phase is Phase.READING:
                log.warning("offset_gone", partition=seat.partition, offset=seat.next_offset, error=error.str())
                self._send_waiting(seat)
        elif error.fatal():
            raise KafkaException(error)
        else:
            log.warning("consumer_event", partition=partition, error=error.str())

    def _follow_hold(self) -> None:
        holding = self._hold()
        if holding == self._holding:
            return
        self._holding = holding
        reading = [
            TopicPartition(self._topic, seat.partition) for seat in self._seats.values() if seat.phase is Phase.READING
        ]
        if reading:
            (self._consumer.pause if holding else self._consumer.resume)(reading)

    # What others see.

    def _note_statistics(self, statistics: str) -> None:
        partitions = json.loads(statistics)["topics"].get(self._topic, {}).get("partitions", {})
        for number, figures in partitions.items():
            seat = self._seats.get(int(number))
            if seat is not None and figures["ls_offset"] >= 0:
                seat.end_offset = max(seat.end_offset or 0, figures["ls_offset"])

    def _publish_status(self, *, idle: bool) -> None:
        now = time.monotonic()
        if idle or now - self._status_at >= _STATUS_SECONDS:
            self._status_at = now
            seats = sorted(self._seats.items())
            self._status = LanesStatus(self._assigned, tuple(seat.status() for _, seat in seats))
