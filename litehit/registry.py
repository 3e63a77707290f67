"""Which instances exist and how each is analysed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from litehit.errors import UnknownInstance
from litehit.registry_yaml import RegistryDocument, read_document
from schemas.registry import GroupEntry, InstanceEntry, RegistryFile


@dataclass(frozen=True, slots=True)
class InstanceConfig:
    """How one instance is analysed.

    Attributes:
        instance_id: the instance (never a glob).
        group: name of its group.
        block_size_tokens: tokens of one analysis block.
        trace_block_size_tokens: tokens of one block as the producer hashed it.
        block_bytes: bytes of one analysis block.
        enable_prefix_hash: the producer's keys are independent per-block hashes and must be chained.
        ttl_ns: time to live of a block in nanoseconds; 0 = off.
        capacity_gb: the configured slots, in binary GB.
    """

    instance_id: str
    group: str
    block_size_tokens: int
    trace_block_size_tokens: int
    block_bytes: int
    enable_prefix_hash: bool
    ttl_ns: int
    capacity_gb: tuple[float, ...]


class Registry:
    """Registrations by exact id and by glob: an exact id wins, then the longest glob, then the earlier one.

    Args:
        configs: one for each registration, in the file's order; the `instance_id` of a glob is its pattern.
    """

    def __init__(self, configs: Iterable[InstanceConfig]) -> None:
        listed = list(configs)
        self._exact = {config.instance_id: config for config in listed if not _is_glob(config.instance_id)}
        globs = [config for config in listed if _is_glob(config.instance_id)]
        globs.sort(key=lambda config: -len(config.instance_id))
        self._globs = [(re.compile(fnmatch.translate(config.instance_id)), config) for config in globs]

    @classmethod
    def load(cls, path: Path) -> Registry:
        """Read a registry file (YAML).

        Raises:
            RegistryError: names the file, the line, the field's path, its value and what to do.
        """
        document = read_document(path)
        file = document.validate(RegistryFile)
        groups = _groups_by_name(file, document)
        return cls(_configs(file, groups, document))

    @property
    def exact_ids(self) -> tuple[str, ...]:
        """The ids that are registered exactly, in the file's order."""
        return tuple(self._exact)

    def default_instance(self) -> str | None:
        """The only exact instance; None where there is none, or more than one."""
        return self.exact_ids[0] if len(self._exact) == 1 else None

    def resolve(self, instance_id: str) -> InstanceConfig:
        """How an instance is analysed.

        Raises:
            UnknownInstance: no registration covers it.
        """
        exact = self._exact.get(instance_id)
        if exact is not None:
            return exact
        for pattern, config in self._globs:
            if pattern.match(instance_id):
                return replace(config, instance_id=instance_id)
        raise UnknownInstance(instance_id)


def _is_glob(instance_id: str) -> bool:
    return any(character in instance_id for character in "*?[")


def _groups_by_name(file: RegistryFile, document: RegistryDocument) -> dict[str, GroupEntry]:
    groups: dict[str, GroupEntry] = {}
    for position, group in enumerate(file.groups):
        if group.name in groups:
            raise document.error(("groups", position, "name"), "names a group that is there already; keep one of them")
        groups[group.name] = group
    return groups


def _configs(file: RegistryFile, groups: dict[str, GroupEntry], document: RegistryDocument) -> Iterable[InstanceConfig]:
    seen: set[str] = set()
    for position, instance in enumerate(file.instances):
        if instance.instance_id in seen:
            raise document.error(
                ("instances", position, "instance_id"), "is registered already; keep one of the two entries"
            )
        seen.add(instance.instance_id)
        if instance.group not in groups:
            raise document.error(
                ("instances", position, "group"), f"is no group; use one of {', '.join(groups)}, or add it to groups"
            )
        yield _config(instance, groups[instance.group])


def _config(instance: InstanceEntry, group: GroupEntry) -> InstanceConfig:
    return InstanceConfig(
        instance_id=instance.instance_id,
        group=group.name,
        block_size_tokens=instance.block_size_tokens,
        trace_block_size_tokens=instance.trace_block_size_tokens or instance.block_size_tokens,
        block_bytes=instance.charge,
        enable_prefix_hash=group.enable_prefix_hash,
        ttl_ns=group.ttl_ns,
        capacity_gb=group.capacity_gb,
    )
