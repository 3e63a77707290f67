"""Handing over in the background: one micro-batch is on its way to Kafka while lanes process the next."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from service.crash_points import CrashPoint, crash_point
from service.errors import BatchAborted, LaneFailed
from service.lanes.committed import Position
from service.lanes.lane import Lane, LaneOutput
from service.lanes.transaction import MicroBatch, Transaction
from service.records import OutputRecord


@dataclass(frozen=True, slots=True)
class Share:
    """What one lane made of its records of a batch.

    Attributes:
        lane: that made it.
        output: facts, dead letters, counts.
        position: where the partition's next batch begins.
    """

    lane: Lane
    output: LaneOutput
    position: Position


@dataclass(frozen=True, slots=True)
class ProcessedBatch:
    """A micro-batch that lanes have processed.

    Attributes:
        topic: name of the requests topic.
        shares: by partition.
        began: when the first lane began with it, in monotonic seconds.
    """

    topic: str
    shares: Mapping[int, Share]
    began: float

    def render(self) -> _Rendered:
        """What goes to Kafka. Of a share whose facts can't be rendered nothing does."""
        outputs: list[OutputRecord] = []
        positions: dict[int, Position] = {}
        failed: dict[int, LaneFailed] = {}
        for partition, share in self.shares.items():
            try:
                outputs += share.output.facts
            except Exception as error:
                failed[partition] = LaneFailed(share.output.sources[0].source, error)
            else:
                outputs += share.output.dead_letters
                positions[partition] = share.position
        return _Rendered(MicroBatch(outputs, self.topic, positions), failed)


class _Rendered(NamedTuple):
    batch: MicroBatch
    failed: Mapping[int, LaneFailed]


@dataclass(frozen=True, slots=True)
class Settled:
    """How a handing over ended.

    Attributes:
        batch: that was handed over.
        aborted: why it was not; None where all of it is in Kafka, but for what failed.
        failed: lanes whose facts could not be rendered, by partition; nothing of their shares was handed over.
    """

    batch: ProcessedBatch
    aborted: BatchAborted | None = None
    failed: Mapping[int, LaneFailed] = field(default_factory=dict)


class Handover:
    """A thread that hands over, a batch at a time, for the one that polls, which makes all calls.

    Args:
        transaction: the way batches are handed over.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="handover")
        self._under_way: tuple[ProcessedBatch, Future[_Rendered]] | None = None

    def begin(self, batch: ProcessedBatch) -> None:
        """Begin to hand over a batch; the one before must be settled."""
        if self._under_way is not None:
            raise AssertionError("a batch was to be handed over while another was")
        try:
            self._transaction.prepare()
        except BatchAborted as error:
            handed_over: Future[_Rendered] = Future()
            handed_over.set_exception(error)
        else:
            handed_over = self._thread.submit(self._hand_over, batch)
        self._under_way = batch, handed_over

    def settle(self) -> Settled | None:
        """Wait for the batch under way; None where there is none.

        Raises:
            ProducerFailed: this process can hand over nothing any more.
        """
        if self._under_way is None:
            return None
        (batch, handed_over), self._under_way = self._under_way, None
        try:
            made, failed = handed_over.result()
            if made.positions:
                self._transaction.finish(made)
        except BatchAborted as error:
            return Settled(batch, error)
        crash_point(CrashPoint.AFTER_COMMIT)
        return Settled(batch, failed=failed)

    def close(self) -> None:
        """End the thread; a batch that was not settled is left to the transaction's `close` and its successor."""
        self._under_way = None
        self._thread.shutdown()

    def _hand_over(self, batch: ProcessedBatch) -> _Rendered:
        crash_point(CrashPoint.BEFORE_PRODUCE)
        rendered = batch.render()
        if rendered.batch.positions:
            self._transaction.hand_over(rendered.batch)
        return rendered
