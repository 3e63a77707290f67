"""A partition as a worker holds it: its lane, how far it is, and whether it works at all."""

from __future__ import annotations

import time
from bisect import bisect_left
from enum import Enum, auto
from math import inf

from service.lanes.backoff import Backoff
from service.lanes.counts import LaneCounts
from service.lanes.lane import Lane, LaneOutput
from service.lanes.read_records import ReadRecords
from service.lanes.restorer import Restored
from service.lanes.status import LaneState, LaneStatus, SnapshotStatus

_NOT_YET = 2**63 - 1  # beyond every offset
_AGAIN_SECONDS = 3.0  # a lane that can't restore looks so often whether it can now
_BACKOFF_SECONDS = (0.1, 0.5, 1.0, 5.0)  # before a restore that failed is tried again, by consecutive failures


class Phase(Enum):
    """Where a seat stands. It begins, and begins again after an abort, as WAITING."""

    WAITING = auto()
    """Nothing may be read yet: the committed offset is not known, or the lane in memory is ahead of it."""
    RESTORING = auto()
    """A lane is made of a snapshot, in the background."""
    READING = auto()
    STOPPED = auto()


class Seat:
    """One partition held by this worker.

    Attributes:
        partition: of the requests topic.
        phase: what it does.
        end_offset: the partition's last stable offset, as last heard.
        error: why it stopped; kept until it begins again.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.phase = Phase.WAITING
        self.end_offset: int | None = None
        self._lane: Lane | None = None
        self._target = 0
        # Where this process's registry began to say what facts are charged; a restore after an abort replays on both
        # sides of it.
        self._live_from = _NOT_YET
        self._next_offset: int | None = None
        self.error: str | None = None
        self._ready_since = time.monotonic()
        self._backoff = Backoff(_BACKOFF_SECONDS)
        self._counts = LaneCounts()
        self._restored_from: int | None = None
        self._replayed = 0

    @property
    def lane(self) -> Lane | None:
        """What it feeds; None unless it is READING."""
        return self._lane

    def ready_since(self) -> float:
        """From when on a lane may be restored for it, in monotonic seconds: inf where it may not."""
        return self._ready_since if self.phase in (Phase.WAITING, Phase.STOPPED) else inf

    def restore(self) -> None:
        """A lane is being made."""
        self.phase = Phase.RESTORING

    def begin(self, restored: Restored) -> None:
        """Read with a fresh lane from the plan's start.

        Raises:
            CoreChanged: as `process`.
        """
        self._backoff.succeeded()
        self._lane, self._target = restored.lane, restored.plan.target
        self._restored_from = None if restored.snapshot is None else restored.snapshot.next_offset
        self._replayed = 0
        self.error = None
        self.phase = Phase.READING
        self._live_from = min(self._live_from, self._target)
        self._arrive(restored.plan.start)

    def wait(self) -> None:
        """Drop the lane until `begin`."""
        self._lane = self._next_offset = None
        self._ready_since = time.monotonic()
        self.phase = Phase.WAITING

    def postpone(self) -> None:
        """Wait, for longer each time until `begin`; other seats have their turn meanwhile."""
        self.wait()
        self._ready_since += self._backoff.failed()

    def stop(self, error: str, *, may_try_again: bool = False) -> None:
        """Work no more; the lane's memory is given back."""
        self._lane = None
        self.error = error
        self._ready_since = time.monotonic() + _AGAIN_SECONDS if may_try_again else inf
        self.phase = Phase.STOPPED

    def process(self, records: ReadRecords) -> LaneOutput | None:
        """Feed the lane; records below the restore's target give no output, and None where all are.

        That is step 6 of a restore in docs/GUARANTEES.md.

        Raises:
            CoreChanged: what was replayed is of another configuration than the registry's.
        """
        if self._lane is None:
            raise AssertionError(f"the seat of partition {self.partition} has no lane in {self.phase}")
        live, fresh = (bisect_left(records.sources.offsets, offset) for offset in (self._live_from, self._target))
        for first, end in ((0, live), (live, fresh)):
            if first < end:
                self._lane.replay(records.part(first, end))
                self._replayed += end - first
            self._arrive(records.sources.offsets[end] if end < len(records) else self._lane.next_offset)
        output = self._lane.process(records.part(fresh, len(records))) if fresh < len(records) else None
        self._next_offset = self._lane.next_offset
        return output

    def reached_end(self, offset: int) -> None:
        """The log has been read up to an offset; markers of transactions take up offsets without a record.

        Raises:
            CoreChanged: as `process`.
        """
        if self.phase is Phase.READING and self._next_offset is not None:
            self._arrive(max(self._next_offset, offset))

    def handed_over(self, counts: LaneCounts) -> None:
        """A batch of this seat is in Kafka."""
        self._counts += counts

    @property
    def history(self) -> int:
        """What the lane commits beside its offsets."""
        return 0 if self._lane is None else self._lane.history

    @property
    def next_offset(self) -> int | None:
        """The next offset to read; None before a restore has begun."""
        return self._next_offset

    @property
    def state(self) -> LaneState:
        """As others see it: restoring until the target is passed, never exactly hit where markers lie before it."""
        if self.error is not None:
            return LaneState.STOPPED
        return LaneState.RUNNING if self._has_arrived() else LaneState.RESTORING

    def status(self, snapshot: SnapshotStatus | None) -> LaneStatus:
        """An immutable picture of the seat, with the newest snapshot of its partition."""
        return LaneStatus(
            partition=self.partition,
            state=self.state,
            next_offset=self._next_offset,
            end_offset=self.end_offset,
            error=self.error,
            counts=self._counts,
            instances=self._lane.instances() if self._lane is not None else (),
            restored_from=self._restored_from,
            replayed=self._replayed,
            snapshot=snapshot,
        )

    def _has_arrived(self) -> bool:
        return self._next_offset is not None and self._next_offset >= self._target

    def _arrive(self, offset: int) -> None:
        """Everything before an offset is processed."""
        self._next_offset = offset
        if self._lane is not None and offset >= self._live_from:
            self._lane.go_live()
