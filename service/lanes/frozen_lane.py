"""A lane as it stood at a record, copied while it waited; a snapshot is made of the copy."""

from __future__ import annotations

import time
from dataclasses import dataclass

from litehit.frozen import FrozenCore
from litehit.registration import Registration
from litehit.registry import InstanceConfig
from litehit.repeats import Digests
from litehit.targets import Routing
from service.lanes.committed import RequestsTopic
from service.lanes.counters import Charge, ChargeSums
from service.lanes.snapshot import InstanceSnapshot, Snapshot


@dataclass(frozen=True, slots=True)
class FrozenInstance:
    """A copy of one instance."""

    config: InstanceConfig
    core: FrozenCore
    sums: dict[Charge, ChargeSums]
    traces: Digests
    is_variant: bool


@dataclass(frozen=True, slots=True)
class FrozenLane:
    """A copy of a lane, made in the time of a copy; `snapshot` does the rest, in any thread.

    Attributes:
        partition, next_offset, history: see `Snapshot`.
        instances: by instance id.
        unregistered: see `LaneInstances`.
        registrations, repeats_window, routing: see `Snapshot`.
    """

    partition: int
    next_offset: int
    history: int
    instances: tuple[FrozenInstance, ...]
    unregistered: tuple[InstanceSnapshot, ...]
    registrations: tuple[Registration, ...]
    repeats_window: int
    routing: Routing

    def snapshot(self, topic: RequestsTopic) -> Snapshot:
        """What is to be kept of it."""
        instances = [
            InstanceSnapshot(one.config, one.core.state, one.sums, one.traces, one.is_variant) for one in self.instances
        ]
        return Snapshot(
            topic,
            self.partition,
            self.next_offset,
            self.history,
            None,
            time.time(),
            sorted([*instances, *self.unregistered], key=lambda one: one.config.instance_id),
            self.registrations,
            self.repeats_window,
            self.routing,
        )
