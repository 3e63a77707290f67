"""What a registry file registers, what an id resolves to and why, and what in it is legal but hardly meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from litehit.counted import counted
from litehit.globs import covers
from litehit.projector import HitCurveProjector
from litehit.registry import InstanceConfig, Registry, is_glob
from schemas.registry import RegistryFile, exact_seconds


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an instance id resolves to.

    Attributes:
        config: how the instance is analysed.
        why: which entry says so.
    """

    config: InstanceConfig
    why: str


def resolve(registry: Registry, instance_id: str) -> Resolved:
    """What an id resolves to, and why.

    Raises:
        UnknownInstance: no entry covers it.
    """
    config = registry.resolve(instance_id)
    base = registry.variant_base(instance_id)
    if base is not None:
        return Resolved(config, f"variant of {base}; requests are sent to that")
    entry = registry.entry(instance_id).instance_id
    others = [glob for glob in registry.globs_matching(instance_id) if glob != entry]
    instead = f", which wins over {', '.join(others)}" if others else ""
    return Resolved(config, f"{'glob' if is_glob(entry) else 'exact id'} {entry}{instead}")


def describe(config: InstanceConfig) -> dict[str, Any]:
    """A configuration as JSON, in the words of the registry file."""
    ttl = exact_seconds(config.ttl_ns)
    return {
        "instance_id": config.instance_id,
        "group": config.group,
        "block_size_tokens": config.block_size_tokens,
        "trace_block_size_tokens": config.trace_block_size_tokens,
        "block_bytes": config.block_bytes,
        "enable_prefix_hash": config.enable_prefix_hash,
        "ttl_seconds": int(ttl) if ttl == int(ttl) else float(ttl),
        "capacity_gb": list(config.capacity_gb),
    }


def warnings(file: RegistryFile, registry: Registry) -> Iterator[str]:
    """What is legal but hardly meant, a sentence each."""
    used = {entry.group for entry in file.instances}
    for group in file.groups:
        if group.name not in used:
            yield f"group {group.name} has no instances; name it in an entry, or remove it"
        for capacity, times in Counter(group.capacity_gb).items():
            if times > 1:
                yield f"group {group.name} has the slot {capacity:g} GB {times} times; one is enough"
    globs = [entry.instance_id for entry in file.instances if is_glob(entry.instance_id)]
    for glob in globs:
        for other in globs:
            if other != glob and _wins(other, glob, globs) and covers(other, glob):
                yield f"glob {glob} is never used: {other} wins and covers all that it does; remove one of the two"
    for config in registry.configs:
        for capacity in config.capacity_gb:
            size = HitCurveProjector.capacity_bytes(capacity)
            if capacity > 0 and size < config.block_bytes:
                yield (
                    f"{config.instance_id}: the slot {capacity:g} GB holds no block of "
                    f"{counted(config.block_bytes, 'byte')}, so "
                    f"it never hits; give a larger one"
                )


def _wins(one: str, other: str, listed: list[str]) -> bool:
    """Whether a glob is asked before another one: the longer, else the earlier."""
    return (-len(one), listed.index(one)) < (-len(other), listed.index(other))
