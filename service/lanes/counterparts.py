"""What an instance of a snapshot is under the registry of now, and what a snapshot lacks of it."""

from __future__ import annotations

from collections.abc import Iterator

from litehit.errors import UnknownInstance
from litehit.registration import Registrations
from litehit.registry import InstanceConfig
from litehit.targets import Routing
from service.lanes.snapshot import InstanceSnapshot, Snapshot


def is_of(kept: InstanceSnapshot, registrations: Registrations) -> bool:
    """Whether an instance of a snapshot is the one that has its id now.

    A variant and an instance of the same id have had other requests, so neither is the other's.
    """
    return kept.is_variant == (registrations.variant_base(kept.config.instance_id) is not None)


def counterpart(kept: InstanceSnapshot, registrations: Registrations) -> InstanceConfig | None:
    """How an instance of a snapshot is analysed now; None where it is registered no more."""
    if not is_of(kept, registrations):
        return None
    try:
        return registrations.resolve(kept.config.instance_id)
    except UnknownInstance:
        return None


def lacking(snapshot: Snapshot, registrations: Registrations, routing: Routing) -> Iterator[tuple[str, str]]:
    """Instances that would begin cold beside a warm one which is given the same requests: each, and that one."""
    held = [one.config.instance_id for one in snapshot.instances if counterpart(one, registrations) is not None]
    pooled = routing.pooled(registrations)
    told = set(held)
    for instance_id in held:
        if registrations.variant_base(instance_id) is not None:
            continue
        for config in routing.targets(registrations, instance_id if pooled is None else pooled):
            if config.instance_id not in told:
                told.add(config.instance_id)
                yield config.instance_id, instance_id
