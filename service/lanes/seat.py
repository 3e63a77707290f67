"""A partition as a worker holds it: its lane, how far it is, and whether it works at all."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from service.lanes.counts import LaneCounts
from service.lanes.lane import Lane, LaneOutput
from service.lanes.restore import RestorePlan
from service.lanes.status import LaneState, LaneStatus
from service.records import SourceRecord


class Phase(Enum):
    """Where a seat stands. It begins, and begins again after an abort, as WAITING."""

    WAITING = auto()
    """Nothing may be read yet: the committed offset is not known, or the lane in memory is ahead of it."""
    READING = auto()
    STOPPED = auto()


class Seat:
    """One partition held by this worker.

    Attributes:
        partition: of the requests topic.
        phase: what it does.
        end_offset: the partition's last stable offset, as last heard.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.phase = Phase.WAITING
        self.end_offset: int | None = None
        self._lane: Lane | None = None
        self._target = 0
        self._next_offset: int | None = None
        self._error: str | None = None
        self._counts = LaneCounts()

    def begin(self, plan: RestorePlan, lane: Lane) -> None:
        """Read with a fresh lane from the plan's start."""
        self._lane, self._target, self._next_offset = lane, plan.target, plan.start
        self.phase = Phase.READING

    def wait(self) -> None:
        """Drop the lane until `begin`."""
        self._lane = self._next_offset = None
        self.phase = Phase.WAITING

    def stop(self, error: str) -> None:
        """Work no more; the lane's memory is given back."""
        self._lane = None
        self._error = error
        self.phase = Phase.STOPPED

    def process(self, records: Sequence[SourceRecord]) -> LaneOutput | None:
        """Feed the lane; records below the restore's target give no output, and None where all are."""
        if self._lane is None:
            raise AssertionError(f"the seat of partition {self.partition} has no lane in {self.phase}")
        fresh = [record for record in records if record.offset >= self._target]
        if len(fresh) < len(records):
            self._lane.replay(records[: len(records) - len(fresh)])
        output = self._lane.process(fresh) if fresh else None
        self._next_offset = self._lane.next_offset
        return output

    def reached_end(self, offset: int) -> None:
        """The log has been read up to an offset; markers of transactions take up offsets without a record."""
        if self.phase is Phase.READING and self._next_offset is not None:
            self._next_offset = max(self._next_offset, offset)

    def handed_over(self, counts: LaneCounts) -> None:
        """A batch of this seat is in Kafka."""
        self._counts += counts

    @property
    def next_offset(self) -> int | None:
        """The next offset to read; None before a restore has begun."""
        return self._next_offset

    @property
    def state(self) -> LaneState:
        """As others see it: restoring until the target is passed, never exactly hit where markers lie before it."""
        if self.phase is Phase.STOPPED:
            return LaneState.STOPPED
        if self.phase is Phase.WAITING or self._next_offset is None or self._next_offset < self._target:
            return LaneState.RESTORING
        return LaneState.RUNNING

    def status(self) -> LaneStatus:
        """An immutable picture of the seat."""
        return LaneStatus(
            partition=self.partition,
            state=self.state,
            next_offset=self._next_offset,
            end_offset=self.end_offset,
            error=self._error,
            counts=self._counts,
            instances=self._lane.instances() if self._lane is not None else (),
        )
