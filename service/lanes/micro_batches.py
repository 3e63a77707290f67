"""Micro-batches on their way: through the lanes, to Kafka beside the lanes' next one, and into the counts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import structlog

from service.errors import BatchAborted, CoreChanged, LaneFailed, TooManyDeadLetters, Undeliverable
from service.lanes.committed import Position, RequestsTopic
from service.lanes.dead_letter_log import DeadLetterLog
from service.lanes.handover import Handover, ProcessedBatch, Share
from service.lanes.lane import Lane
from service.lanes.read_ahead import ReadBatch, ReadFailure
from service.lanes.read_records import ReadRecords
from service.lanes.requests_consumer import RequestsConsumer
from service.lanes.seat import Seat
from service.lanes.time_log import TimeLog
from service.lanes.usher import Usher
from service.metrics import LanesMetrics
from service.settings import Settings

log = structlog.get_logger()


class MicroBatches:
    """What becomes of a micro-batch; the numbered steps are those of docs/GUARANTEES.md, 2 to 4 the transaction's.

    Args:
        settings: names of topics, for errors.
        topic: the requests topic.
        seats: by partition; the worker's own, as they are at any time.
        consumer: pauses what waits.
        usher: stops seats, and is told how batches end.
        handover: takes steps 2 to 4.
        metrics: counts what is handed over.
    """

    def __init__(
        self,
        settings: Settings,
        topic: RequestsTopic,
        seats: Mapping[int, Seat],
        consumer: RequestsConsumer,
        usher: Usher,
        handover: Handover,
        metrics: LanesMetrics,
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._seats = seats
        self._consumer = consumer
        self._usher = usher
        self._handover = handover
        self._metrics = metrics
        self._dead_letter_log = DeadLetterLog()
        self._time_log = TimeLog()

    def process(self, batches: ReadBatch) -> None:
        """Take step 1 of a batch, of partitions whose lanes work.

        The steps after it are taken while the lanes process the next batch, up to the end of that one's step 1.
        """
        began = time.monotonic()
        shares: dict[int, Share] = {}
        for partition, records in batches.items():
            share = self._process_share(self._seats[partition], records)  # 1.
            if share is not None:
                shares[partition] = share
        self.settle()
        # What was made by a lane that was dropped meanwhile follows from what was aborted.
        shares = {partition: share for partition, share in shares.items() if self.feeds(partition, share.lane)}
        if shares:
            self._handover.begin(ProcessedBatch(self._topic.name, shares, began))

    def settle(self) -> None:
        """Wait for what is being handed over, and note how that ended.

        Called before a seat is given another state, and wherever all that was processed must be committed.
        """
        settled = self._handover.settle()
        if settled is None:
            return
        shares = settled.batch.shares
        if settled.aborted is not None:
            self._rebuild(shares, settled.aborted)  # 5.
            return
        # 6. All is in Kafka; the counts, and soon a snapshot, may say so.
        self._usher.succeeded()
        consumed = 0
        for partition, share in shares.items():
            seat = self._seats[partition]
            if (failed := settled.failed.get(partition)) is not None:
                self._stop_failed(seat, failed)
                continue
            counts = share.output.counts
            consumed += counts.consumed
            seat.handed_over(counts)
            self._metrics.handed_over(partition, counts)
            self._dead_letter_log.note(share.output.dead_letters)
            self._time_log.note(partition, share.output)
        self._metrics.batch(consumed, time.monotonic() - settled.batch.began)

    def tell_dead_letters(self, *, at_end: bool = False) -> None:
        """Tell of those that the log has not told yet, in time or at the end."""
        self._dead_letter_log.tell_rest(at_end=at_end)

    def send_waiting(self, seat: Seat) -> None:
        """Drop a seat's lane; it begins again."""
        seat.wait()
        self._consumer.pause([seat.partition])

    def feeds(self, partition: int, lane: Lane | None) -> bool:
        """Whether a lane is still the one that a partition's records go to."""
        seat = self._seats.get(partition)
        return seat is not None and seat.lane is not None and seat.lane is lane

    def _process_share(self, seat: Seat, records: ReadRecords | ReadFailure) -> Share | None:
        """Step 1 of one lane; None where there is nothing to hand over."""
        lane = seat.lane
        if lane is None:
            return None  # dropped when the batch before was settled, for the fault of a lane
        if isinstance(records, ReadFailure):
            self._halt(seat, lane, LaneFailed(records.first.source, records.error))
            return None
        try:
            output = seat.process(records)
        except TooManyDeadLetters as error:
            if self._settle_and_feed(seat, lane):
                self._usher.stop_seat(seat, str(error))
        except CoreChanged as error:
            if self._settle_and_feed(seat, lane):
                self._usher.refuse(seat, error)
        except Exception as error:
            self._halt(seat, lane, LaneFailed(records.sources[0].source, error))
        else:
            if output is not None:
                next_offset = records.sources.offsets[-1] + 1
                return Share(lane, output, Position.of(next_offset, self._topic, seat.history))
        return None

    def _settle_and_feed(self, seat: Seat, lane: Lane) -> bool:
        """Whether a lane still is the seat's once the batch before is settled, which may have ended with its end."""
        self.settle()
        return self.feeds(seat.partition, lane)

    def _halt(self, seat: Seat, lane: Lane, failed: LaneFailed) -> None:
        """Whatever leaves a lane is a fault of ours, never a dead letter: this lane halts, the others go on."""
        if self._settle_and_feed(seat, lane):
            self._stop_failed(seat, failed)

    def _stop_failed(self, seat: Seat, failed: LaneFailed) -> None:
        log.error("lane_failed", partition=seat.partition, first=failed.first, exc_info=failed.error)
        self._usher.stop_seat(seat, str(failed))

    def _rebuild(self, partitions: Iterable[int], error: BatchAborted) -> None:
        """After an abort the touched lanes are ahead of the offsets: none of them goes on."""
        self._metrics.aborted()
        log.warning("batch_aborted", partitions=sorted(partitions), error=str(error))
        for partition in partitions:
            seat = self._seats[partition]
            if isinstance(error, Undeliverable) and error.partition == partition:
                self._usher.stop_seat(seat, f"{error}; {self._remedy(error.topic)}")
            else:
                self.send_waiting(seat)
        self._usher.back_off()

    def _remedy(self, topic: str) -> str:
        remedy = f"see the settings of {topic}, then restart"
        if topic == self._settings.dead_letters_topic:
            remedy += (
                f"; or let dead letters be cut at less than the {self._settings.dead_letter_max_bytes} bytes of now "
                f"(LITEHIT_DEAD_LETTER_MAX_BYTES)"
            )
        return remedy
