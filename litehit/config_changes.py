"""In what two configurations of an instance differ, and whether its cache outlives that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litehit.registry import InstanceConfig
from schemas.registry import exact_seconds

CORE_FIELDS = ("block_size_tokens", "trace_block_size_tokens", "enable_prefix_hash", "ttl_ns")
"""What a cache depends on. Anything else applies to later facts."""

_OTHER_FIELDS = ("block_bytes", "capacity_gb", "group")


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting of one instance that is another now.

    Attributes:
        instance_id: the instance.
        name: of the setting.
        before, after: its values.
        is_core: the cache was filled under the value before and says nothing under the one after.
    """

    instance_id: str
    name: str
    before: object
    after: object
    is_core: bool

    def __str__(self) -> str:
        return f"{self.instance_id} has {self.name} {self.before} there and {self.after} now"


def config_changes(before: InstanceConfig, after: InstanceConfig) -> tuple[ConfigChange, ...]:
    """The settings that differ, those that the core depends on first."""
    return tuple(
        ConfigChange(
            before.instance_id, *_shown(name, getattr(before, name), getattr(after, name)), name in CORE_FIELDS
        )
        for name in (*CORE_FIELDS, *_OTHER_FIELDS)
        if getattr(before, name) != getattr(after, name)
    )


def core_changes(before: InstanceConfig, after: InstanceConfig) -> tuple[ConfigChange, ...]:
    """Those that the core depends on."""
    return tuple(change for change in config_changes(before, after) if change.is_core)


def _shown(name: str, before: Any, after: Any) -> tuple[str, object, object]:
    if name == "ttl_ns":
        return "ttl_seconds", f"{exact_seconds(before):f}", f"{exact_seconds(after):f}"
    if name == "capacity_gb":
        return name, list(before), list(after)
    return name, before, after
