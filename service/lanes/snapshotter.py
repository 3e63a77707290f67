"""When snapshots are taken, and the background in which they are written."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass

import structlog

from litehit.errors import LiteHitError
from service.background import in_background
from service.lanes.frozen_lane import FrozenLane
from service.lanes.lane import Lane
from service.lanes.restorer import Restored
from service.lanes.snapshots import Snapshots
from service.lanes.status import SnapshotStatus
from service.metrics import LanesMetrics
from service.settings import Settings
from service.stagger import first_wait

log = structlog.get_logger()

_SHIFT = 0.3


@dataclass(slots=True)
class _Course:
    """One partition's snapshots.

    Attributes:
        newest: what a restart would go on from.
        tried_at: when a snapshot was last taken, or the lane began; monotonic seconds.
        tried_offset: the lane's next offset then.
        wait: seconds from then to the next, if nothing else makes it due.
    """

    newest: SnapshotStatus | None
    tried_at: float
    tried_offset: int
    wait: float


class Snapshotter:
    """Takes snapshots of lanes, called between batches, when all that a lane has processed is committed.

    The lane waits for a copy of its state; a thread makes a file of it and writes it, one of a process at a time. A
    snapshot that can't be written is told, and taken again later; the lane goes on. The numbered steps are those of
    docs/GUARANTEES.md.

    Args:
        settings: how often.
        snapshots: where they go.
        metrics: counts them.
    """

    def __init__(self, settings: Settings, snapshots: Snapshots, metrics: LanesMetrics) -> None:
        self._settings = settings
        self._snapshots = snapshots
        self._metrics = metrics
        self._courses: dict[int, _Course] = {}
        self._writing: Future[None] | None = None

    def begun(self, restored: Restored) -> None:
        """A lane begins."""
        lane, snapshot = restored.lane, restored.snapshot
        newest = None if snapshot is None else SnapshotStatus(snapshot.next_offset, snapshot.taken_at)
        # Until there is a snapshot, a changed registry would not be noticed: the first is due at once.
        tried_at = -math.inf if snapshot is None else time.monotonic()
        # Not when the archive, which begins with the lanes, writes this partition's segment.
        wait = first_wait(self._settings.snapshot_seconds, lane.partition, _SHIFT)
        self._courses[lane.partition] = _Course(newest, tried_at, lane.next_offset, wait)

    def newest(self, partition: int) -> SnapshotStatus | None:
        """The newest snapshot of a lane that is known to be in the store."""
        course = self._courses.get(partition)
        return None if course is None else course.newest

    def is_due(self, lanes: Collection[Lane]) -> bool:
        """Whether `take_one` would take a snapshot; asked at any time, also when the lanes are ahead of the commits."""
        return (self._writing is None or self._writing.done()) and any(map(self._is_due, lanes))

    def take_one(self, lanes: Collection[Lane]) -> None:
        """Take the snapshot that is due for longest, if any is and none is being written."""
        if self.is_due(lanes):
            due = filter(self._is_due, lanes)
            self._take(min(due, key=lambda lane: self._courses[lane.partition].tried_at))

    def take_all(self, lanes: Iterable[Lane]) -> None:
        """Take a last snapshot of lanes that are given up, and wait until they are written or time is up."""
        deadline = time.monotonic() + self._settings.snapshot_deadline_seconds
        for lane in lanes:
            if self._is_new(lane) and self._await_writing(deadline, lane.partition):
                self._take(lane)
        self._await_writing(deadline, None)

    def _is_new(self, lane: Lane) -> bool:
        """Whether the lane has processed anything since the snapshot that a restart would go on from."""
        newest = self._courses[lane.partition].newest
        return lane.next_offset > (0 if newest is None else newest.next_offset)

    def _is_due(self, lane: Lane) -> bool:
        course = self._courses[lane.partition]
        return self._is_new(lane) and (
            # Until a snapshot says from where on facts are charged otherwise, a crash would forget it.
            lane.is_recharged
            or time.monotonic() - course.tried_at >= course.wait
            or lane.next_offset - course.tried_offset >= self._settings.snapshot_records
        )

    def _take(self, lane: Lane) -> None:
        course = self._courses[lane.partition]
        if math.isfinite(course.tried_at):  # all lanes' first ones may be due at once, so they don't count
            course.wait = self._settings.snapshot_seconds
        began = time.monotonic()
        frozen = lane.freeze()  # 1.
        course.tried_at, course.tried_offset = time.monotonic(), lane.next_offset
        self._metrics.snapshot_taken(course.tried_at - began)
        self._writing = in_background(f"snapshot-{lane.partition}", lambda: self._write(frozen, course))

    def _write(self, frozen: FrozenLane, course: _Course) -> None:
        partition = frozen.partition
        began = time.monotonic()
        try:
            snapshot = frozen.snapshot(self._snapshots.topic)  # 2.
            size = self._snapshots.write(snapshot)
        except Exception as error:
            # Whatever it is, the lane needs no snapshot to go on; the one before stays.
            traceback = None if isinstance(error, LiteHitError) else error
            log.error(
                "snapshot_failed",
                partition=partition,
                next_offset=frozen.next_offset,
                error=str(error),
                exc_info=traceback,
            )
            self._metrics.snapshot_failed(partition)
            return
        course.newest = SnapshotStatus(snapshot.next_offset, snapshot.taken_at)
        seconds = time.monotonic() - began
        self._metrics.snapshot_written(partition, size, seconds)
        log.info("snapshot_written", path=snapshot.path, bytes=size, seconds=round(seconds, 3))

    def _await_writing(self, deadline: float, partition: int | None) -> bool:
        if self._writing is not None and wait([self._writing], max(0.0, deadline - time.monotonic())).not_done:
            log.warning("snapshot_given_up", partition=partition, seconds=self._settings.snapshot_deadline_seconds)
            return False
        return True
