"""An operator's choice of where a lane goes on that can't restore its caches."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum

from service.errors import NothingToReset
from service.lanes.committed import Committed, RequestsTopic
from service.lanes.restore import Standing
from service.lanes.snapshot import Reset, Snapshot
from service.lanes.snapshots import Snapshots


class ResetTo(StrEnum):
    """With what a lane goes on."""

    COLD = "cold"
    """Empty caches, at the committed offset, or the first that is left."""
    EARLIEST = "earliest"
    """Empty caches, at the first offset that is left; facts are given again."""
    SNAPSHOT = "snapshot"
    """The newest snapshot's caches, at the committed offset, or the first that is left."""


@dataclass(frozen=True, slots=True)
class ResetDone:
    """What was chosen for a partition.

    Attributes:
        snapshot: what its lane goes on from.
        committed: the group's offset, as far as it means anything in the topic; None where it does not.
        caches_end: up to where the caches know the requests; None where they are empty.
    """

    snapshot: Snapshot
    committed: int | None
    caches_end: int | None

    @property
    def unread(self) -> int:
        """Offsets that expired before they were processed."""
        return max(0, self.snapshot.next_offset - self.committed) if self.committed is not None else 0

    @property
    def again(self) -> int:
        """Offsets whose facts are given again."""
        return max(0, self.committed - self.snapshot.next_offset) if self.committed is not None else 0


def reset_lane(snapshots: Snapshots, partition: int, to: ResetTo, group: str, standing: Standing) -> ResetDone:
    """Leave a choice for the lane in the store, as its only snapshot. It is followed when the lane next restores.

    Raises:
        NothingToReset: no snapshot can be read.
        StoreError: the store can't be read or written.
    """
    readable = list(snapshots.readable(partition))
    done = plan_reset(snapshots.topic, partition, to, group, standing, readable)
    snapshots.replace_all(done.snapshot)
    return done


def plan_reset(
    topic: RequestsTopic, partition: int, to: ResetTo, group: str, standing: Standing, readable: list[Snapshot]
) -> ResetDone:
    """What `reset_lane` leaves in the store, given the partition's snapshots that can be read, newest first."""
    committed = _meaningful(topic, standing)
    histories = [standing.committed.history or 0, *(snapshot.history for snapshot in readable)]
    at = standing.low if to is ResetTo.EARLIEST else max(standing.low, committed or 0)
    # What the stream has registered is no cache: it goes on, unless it is read again.
    knowing = (one for one in readable if to is not ResetTo.EARLIEST or one.next_offset <= at)
    registrations = next((one.registrations for one in knowing), ())
    reset = Reset(group, standing.committed.offset)
    chosen = Snapshot(topic, partition, at, max(histories) + 1, reset, time.time(), (), registrations)
    # Where nothing was processed yet, empty caches lack nothing.
    if to is not ResetTo.SNAPSHOT or (not readable and not committed):
        return ResetDone(chosen, committed, None)
    if not readable:
        raise NothingToReset(
            f"{topic.name}/{partition}: there is no snapshot that can be read in generation {topic.generation}; "
            f"choose cold or earliest"
        )
    kept = readable[0]
    chosen = replace(chosen, instances=kept.instances, repeats_window=kept.repeats_window, routing=kept.routing)
    return ResetDone(chosen, committed, kept.next_offset)


def _meaningful(topic: RequestsTopic, standing: Standing) -> int | None:
    committed: Committed = standing.committed
    if committed.offset is None or committed.generation not in (None, topic.generation):
        return None
    return min(committed.offset, standing.end)
