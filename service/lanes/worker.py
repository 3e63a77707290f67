"""The lanes of one process: poll, feed each partition's lane, hand over beside the next poll, again."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import structlog

from litehit.instance import warm_up
from litehit.registry import Registry
from service import formats
from service.archive.errors import StoreError
from service.archive.store import Store
from service.errors import CoreChanged
from service.garbage import collect_seldom
from service.lag_window import LagWindow
from service.lanes.at_least_once import AtLeastOnce
from service.lanes.committed import RequestsTopic
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.handover import Handover
from service.lanes.lane import Lane, LaneTargets
from service.lanes.micro_batches import MicroBatches
from service.lanes.poison_limit import PoisonLimits
from service.lanes.pooling import check_pooling
from service.lanes.read_ahead import ReadAhead, ReadPoll
from service.lanes.requests_consumer import RequestsConsumer
from service.lanes.restorer import Restored, Restorer
from service.lanes.seat import Seat
from service.lanes.snapshot import Snapshot
from service.lanes.snapshots import Snapshots
from service.lanes.snapshotter import Snapshotter
from service.lanes.standings import Standings
from service.lanes.status import LanesStatus
from service.lanes.topic_guard import TopicGuard
from service.lanes.transaction import Transaction
from service.lanes.usher import Usher
from service.metrics import LanesMetrics
from service.settings import Settings
from service.topic_watch import TopicWatch
from service.topics import TopicLayout

log = structlog.get_logger()

_STATUS_SECONDS = 0.5
_SWITCH_SECONDS = 0.0002
"""After so long a thread of the process gives way to another that waits for the interpreter.

The engine works without the interpreter and needs it back after a fraction of a millisecond: a small part of the 5 ms
that Python lets the thread that reads ahead keep it.
"""


class LanesWorker:
    """One member of the lanes' consumer group, working in the thread that calls `run`.

    Args:
        settings: topics, group, limits.
        bootstrap: Kafka's bootstrap servers.
        layout: the topics as they were found at start.
        registry: the instances that are known.
        metrics: counts what is handed over.
        store: where the lanes' snapshots are.
        hold: on the embedded broker, True while facts must not come faster; the worker then only polls. Asked between
            batches, when none is being handed over.
        facts_window: on the embedded broker, counts the facts that it took.
        watch: on Kafka, tells whether the requests topic is still the same.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        layout: TopicLayout,
        registry: Registry,
        metrics: LanesMetrics,
        store: Store,
        hold: Callable[[], bool] | None = None,
        facts_window: LagWindow | None = None,
        watch: TopicWatch | None = None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._topic = RequestsTopic(settings.requests_topic, layout.requests_generation, layout.partitions)
        check_pooling(settings, self._topic, registry)
        self._registry = registry
        self._hold = hold
        self._holding = False
        self._stop = threading.Event()
        self._ended = False
        self._targets = LaneTargets(settings.facts_topic, settings.dead_letters_topic, settings.dead_letter_max_bytes)
        self._limits = PoisonLimits.of(settings)
        guard = TopicGuard(self._topic, watch, self._stops_within)
        topic_formats = formats.of_topic(
            settings.requests_format, settings.instance_template, settings.routing.pooled(registry)
        )
        self._ahead = ReadAhead(guard, topic_formats, settings.batch_bytes)
        self._consumer = RequestsConsumer(settings, bootstrap, listener=self)
        self._transaction = self._choose_transaction(bootstrap, facts_window)
        self._handover = Handover(self._transaction)
        self._snapshots = Snapshots(store, self._topic)
        restorer = Restorer(self._snapshots, settings.group_id, registry, self._make_lane, settings.routing)
        self._standings = Standings(settings, bootstrap, self._topic)
        self._usher = Usher(self._consumer, self._standings, restorer, self._begin)
        self._snapshotter = Snapshotter(settings, self._snapshots, metrics)
        self._seats: dict[int, Seat] = {}
        self._batches = MicroBatches(
            settings, self._topic, self._seats, self._consumer, self._usher, self._handover, metrics
        )
        self._assigned = False
        self._heard_at = time.monotonic()
        self._status = LanesStatus(False, (), self._heard_at)
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
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            warm_up()
            self._ahead.warm_up()
            collect_seldom()
            self._transaction.open()
            self._consumer.subscribe()
            waiting: Future[ReadPoll] | None = None
            while not stop.is_set():
                self._follow_hold()
                polled = self._consumer.poll()
                coming = self._ahead.begin(polled, self._lanes())
                if waiting is not None:
                    self._handle(waiting.result())
                # Where more is to come at once, this is read while the next is polled; else nothing is gained by that.
                waiting = coming if polled.full else None
                if waiting is None:
                    self._handle(coming.result())
                self._look_around(idle=not polled.messages)
            self._batches.settle()
        except BaseException:
            self._seats.clear()  # a lane may be ahead of what is committed
            raise
        finally:
            self._ended = True
            self._ahead.close()
            self._handover.close()
            self._transaction.close()
            self._consumer.close()  # which revokes the partitions
            self._standings.close()
            self._publish_status()
            self._batches.tell_dead_letters(at_end=True)
        if self._settings.embedded:
            self._forget_snapshots()

    # What the group tells (GroupListener).

    def assigned(self, partitions: Sequence[int]) -> None:
        """Take seats; they begin from the loop, one by one."""
        self._assigned = True
        self._seats.update((partition, Seat(partition)) for partition in partitions)

    def revoked(self, partitions: Sequence[int]) -> None:
        """Give up seats. All they have processed is committed then, so the next owner may go on from here."""
        self._batches.settle()
        if not self._settings.embedded:  # whose topics end with this process
            lanes = self._lanes()
            self._snapshotter.take_all([lanes[partition] for partition in partitions if partition in lanes])
        self._drop(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop seats: the group has gone on without this member, which has no partitions until it is given some."""
        self._assigned = False
        self._batches.settle()
        self._drop(partitions)

    def end_offset(self, partition: int, offset: int) -> None:
        """Note how far a log goes."""
        seat = self._seats.get(partition)
        if seat is not None:
            seat.end_offset = offset

    def heard(self) -> None:
        """Note that Kafka is there."""
        self._heard_at = time.monotonic()

    def _drop(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._seats.pop(partition, None)

    # One round of the loop.

    def _handle(self, poll: ReadPoll) -> None:
        if poll.fault is not None:
            if not self._stop.is_set():
                self._stop_all(poll.fault)
            return

        def still_reads(partition: int) -> bool:
            # What came in for a partition that is gone, or begins again, is read again by whoever does.
            return self._batches.feeds(partition, poll.lanes.get(partition))

        for batch in poll.batches:
            mine = {partition: records for partition, records in batch.items() if still_reads(partition)}
            if mine:
                self._batches.process(mine)
        for partition, offset in poll.ends.items():
            if still_reads(partition):
                try:
                    self._seats[partition].reached_end(offset)
                except CoreChanged as error:
                    self._batches.settle()
                    self._usher.refuse(self._seats[partition], error)
        if poll.gone:
            self._batches.settle()
        for partition in filter(still_reads, poll.gone):
            # Beginning again finds out what the log still holds, and stops the lane with a sentence that says it.
            self._batches.send_waiting(self._seats[partition])

    def _stop_all(self, fault: str) -> None:
        self._batches.settle()
        for seat in self._seats.values():
            self._usher.stop_seat(seat, f"{self._topic.name}/{seat.partition}: {fault}")

    def _look_around(self, *, idle: bool) -> None:
        """What is done between batches, and needs what was processed to be committed."""
        lanes = self._lanes().values()
        told = idle or time.monotonic() - self._status_at >= _STATUS_SECONDS
        if told or self._snapshotter.is_due(lanes):
            self._batches.settle()
            self._snapshotter.take_one(self._lanes().values())
        self._usher.step(self._seats)
        if told:
            self._publish_status()
            self._batches.tell_dead_letters()

    # What the usher tells and needs.

    def _begin(self, seat: Seat, restored: Restored) -> None:
        self._metrics.begun(seat.partition)
        self._snapshotter.begun(restored)
        if self._holding:
            self._consumer.pause([seat.partition])
        snapshot, plan = restored.snapshot, restored.plan
        log.info(
            "lane_begun",
            partition=seat.partition,
            snapshot=None if snapshot is None else snapshot.path,
            start=plan.start,
            target=plan.target,
            end=seat.end_offset,
        )

    def _make_lane(self, partition: int, restored: Snapshot | None) -> Lane:
        window, routing = self._settings.repeats_window, self._settings.routing
        return Lane(partition, self._registry, self._targets, self._limits, window, restored, routing)

    def _lanes(self) -> dict[int, Lane]:
        """The lanes that work, by partition: those of the seats that are READING."""
        return {partition: seat.lane for partition, seat in self._seats.items() if seat.lane is not None}

    def _forget_snapshots(self) -> None:
        """They are of topics that end with this process."""
        try:
            self._snapshots.delete_all()
        except StoreError as error:
            log.warning("snapshots_left_behind", error=str(error))

    def _follow_hold(self) -> None:
        if self._hold is None:
            return
        self._batches.settle()
        holding = self._hold()
        if holding == self._holding:
            return
        self._holding = holding
        reading = self._lanes().keys()
        if holding:
            self._consumer.pause(reading)
        else:
            self._consumer.resume(reading)

    def _publish_status(self) -> None:
        self._status_at = time.monotonic()
        seats = sorted(self._seats.items())
        self._status = LanesStatus(
            self._assigned, tuple(seat.status(self._snapshotter.newest(at)) for at, seat in seats), self._heard_at
        )

    def _choose_transaction(self, bootstrap: str, facts_window: LagWindow | None) -> Transaction:
        settings = self._settings
        if settings.at_least_once:
            return AtLeastOnce(settings, bootstrap, self._consumer.client, self._is_stopping, facts_window)
        return ExactlyOnce(settings, bootstrap, self._consumer.membership, self._is_stopping)

    def _is_stopping(self) -> bool:
        return self._ended or self._stop.is_set()

    def _stops_within(self, seconds: float) -> bool:
        return self._stop.wait(seconds) or self._ended
