"""What a lanes process says about itself: plain values for readiness, metrics and the API."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals
from service.lanes.counts import LaneCounts


class LaneState(StrEnum):
    """What a lane is doing."""

    RESTORING = "restoring"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """One instance's core.

    Attributes:
        config: how it is analysed.
        unique_blocks: blocks it holds.
        memory_bytes: bytes of its arrays.
        totals: its facts so far, at its configured capacities; not to be changed.
        is_variant: it is a variant of another one, which has the same requests.
    """

    config: InstanceConfig
    unique_blocks: int
    memory_bytes: int
    totals: SlotTotals
    is_variant: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The newest snapshot of a lane.

    Attributes:
        next_offset: of the record it goes on with.
        taken_at: when it was taken, in seconds since 1970.
    """

    next_offset: int
    taken_at: float


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One lane at one moment.

    Attributes:
        partition: of the requests topic.
        state: what it does.
        next_offset: the next record to process; None before the committed offset is known.
        end_offset: the requests partition's last stable offset, as last heard; None before it is known.
        error: why it stopped; None unless it did.
        counts: records handed over since this process holds the partition.
        instances: the cores it holds, by instance id.
        restored_from: next offset of the snapshot that its caches were restored from; None from the start of the log.
        replayed: records read again to restore its caches.
        snapshot: what a restart would go on from; None where there is no snapshot, or the lane is not restored yet.
    """

    partition: int
    state: LaneState
    next_offset: int | None
    end_offset: int | None
    error: str | None
    counts: LaneCounts
    instances: tuple[InstanceStatus, ...]
    restored_from: int | None = None
    replayed: int = 0
    snapshot: SnapshotStatus | None = None

    @property
    def lag(self) -> int | None:
        """Records between the lane and the last stable offset; None before both are known."""
        if self.next_offset is None or self.end_offset is None:
            return None
        return max(0, self.end_offset - self.next_offset)


@dataclass(frozen=True, slots=True)
class LanesStatus:
    """All lanes of a process at one moment.

    Attributes:
        assigned: the group has answered; before that `lanes` is empty because nothing is known.
        lanes: one a partition held, by partition.
        heard_at: when the lanes last heard of a broker that is connected, in monotonic seconds.
    """

    assigned: bool
    lanes: tuple[LaneStatus, ...]
    heard_at: float = field(default_factory=time.monotonic)

    @property
    def split_instances(self) -> frozenset[str]:
        """Instances, but no variants, that more than one lane holds, since their records lie on several partitions."""
        held = Counter(one.config.instance_id for lane in self.lanes for one in lane.instances if not one.is_variant)
        return frozenset(instance_id for instance_id, lanes in held.items() if lanes > 1)
