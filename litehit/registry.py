"""Which instances exist and how each is analysed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from litehit.errors import UnknownInstance, VariantAddressed
from litehit.registry_yaml import FieldPath, RegistryDocument, read_document
from litehit.variants import base_of, variant_id
from schemas.registry import GroupEntry, InstanceEntry, RegistryFile, VariantEntry, whole_nanoseconds


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
        variants: those of each registration that has some, by its `instance_id`; their own is their name.
    """

    def __init__(
        self, configs: Iterable[InstanceConfig], variants: Mapping[str, Sequence[InstanceConfig]] | None = None
    ) -> None:
        self._listed = listed = list(configs)
        self._exact = {config.instance_id: config for config in listed if not is_glob(config.instance_id)}
        globs = [config for config in listed if is_glob(config.instance_id)]
        globs.sort(key=lambda config: -len(config.instance_id))
        self._globs = [(re.compile(fnmatch.translate(config.instance_id)), config) for config in globs]
        self._variants = dict(variants or {})

    @classmethod
    def load(cls, path: Path) -> Registry:
        """Read a registry file (YAML).

        Raises:
            RegistryError: names the file, the line, the field's path, its value and what to do.
        """
        document = read_document(path)
        file = document.validate(RegistryFile)
        groups = _groups_by_name(file, document)
        configs = list(_configs(file, groups, document))
        variants = {
            config.instance_id: tuple(_variants(position, entry, config, document))
            for position, (entry, config) in enumerate(zip(file.instances, configs, strict=True))
        }
        registry = cls(configs, variants)
        for position, entry in enumerate(file.instances):
            base = registry.variant_base(entry.instance_id)
            if base is not None:
                raise document.error(
                    ("instances", position, "instance_id"),
                    f"is the id of a variant of {base!r}; rename one of the two",
                )
        return registry

    @property
    def configs(self) -> tuple[InstanceConfig, ...]:
        """Every registration in the file's order, each followed by its variants."""
        return tuple(
            one
            for config in self._listed
            for one in (config, *self._variants_of(config.instance_id, config.instance_id))
        )

    @property
    def most_facts(self) -> int:
        """Facts that one request becomes at most: that of its instance, and of each variant of it."""
        return 1 + max(map(len, self._variants.values()), default=0)

    def globs_matching(self, instance_id: str) -> tuple[str, ...]:
        """The globs that match an id, the one that counts first."""
        return tuple(config.instance_id for pattern, config in self._globs if pattern.match(instance_id))

    @property
    def exact_ids(self) -> tuple[str, ...]:
        """The ids that are registered exactly, in the file's order."""
        return tuple(self._exact)

    def default_instance(self) -> str | None:
        """The only exact instance; None where there is none, or more than one."""
        return self.exact_ids[0] if len(self._exact) == 1 else None

    def resolve(self, instance_id: str) -> InstanceConfig:
        """How an instance, or a variant of one, is analysed.

        Raises:
            UnknownInstance: no registration covers it.
        """
        base = self.variant_base(instance_id)
        if base is not None:
            return next(config for config in self.variants(base) if config.instance_id == instance_id)
        return replace(self.entry(instance_id), instance_id=instance_id)

    def resolve_addressed(self, instance_id: str) -> InstanceConfig:
        """How the instance is analysed that a request names.

        Raises:
            UnknownInstance: no registration covers it.
            VariantAddressed: it is a variant, which has no requests of its own.
        """
        self.refuse_variant(instance_id)
        return self.resolve(instance_id)

    def refuse_variant(self, instance_id: str) -> None:
        """Raise VariantAddressed for the id of a variant."""
        base = self.variant_base(instance_id)
        if base is not None:
            raise VariantAddressed(instance_id, base)

    def variants(self, instance_id: str) -> tuple[InstanceConfig, ...]:
        """The variants of an instance, in the file's order; none of one that no registration covers."""
        try:
            entry = self.entry(instance_id)
        except UnknownInstance:
            return ()
        return self._variants_of(entry.instance_id, instance_id)

    def variant_base(self, instance_id: str) -> str | None:
        """The instance whose variant an id is; None where it is no variant's."""
        base = base_of(instance_id)
        if base is None or self.variant_base(base) is not None:  # variants have none themselves
            return None
        is_variant = any(config.instance_id == instance_id for config in self.variants(base))
        return base if is_variant else None

    def entry(self, instance_id: str) -> InstanceConfig:
        """The registration that covers an id, under its own `instance_id`: the file's entry.

        Raises:
            UnknownInstance: none does.
        """
        exact = self._exact.get(instance_id)
        if exact is not None:
            return exact
        for pattern, config in self._globs:
            if pattern.match(instance_id):
                return config
        raise UnknownInstance(instance_id)

    def _variants_of(self, entry_id: str, instance_id: str) -> tuple[InstanceConfig, ...]:
        """The variants of an entry, as those of an instance that it covers."""
        return tuple(
            replace(config, instance_id=variant_id(instance_id, config.instance_id))
            for config in self._variants.get(entry_id, ())
        )


def is_glob(instance_id: str) -> bool:
    """Whether an id of the registry file stands for many."""
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
        ttl_ns=whole_nanoseconds(group.ttl_seconds),
        capacity_gb=group.capacity_gb,
    )


def _variants(
    position: int, entry: InstanceEntry, config: InstanceConfig, document: RegistryDocument
) -> Iterator[InstanceConfig]:
    """The variants of an entry, each with its name for an instance id."""
    names: set[str] = set()
    for place, variant in enumerate(entry.variants):
        path = ("instances", position, "variants", place)
        if variant.name in names:
            raise document.error((*path, "name"), "names a variant that is there already; keep one of them")
        names.add(variant.name)
        yield _variant(variant, config, document, path)


def _variant(
    variant: VariantEntry, config: InstanceConfig, document: RegistryDocument, path: FieldPath
) -> InstanceConfig:
    if not variant.model_fields_set - {"name"}:
        raise document.error(path, "states nothing but its name; say what is other than the entry's, or remove it")
    size = config.block_size_tokens if variant.block_size_tokens is None else variant.block_size_tokens
    if size % config.trace_block_size_tokens:
        raise document.error(
            (*path, "block_size_tokens"),
            f"must be a multiple of the entry's trace_block_size_tokens {config.trace_block_size_tokens}: blocks can "
            f"only be made coarser, by a whole factor",
        )
    charge = variant.charge
    if charge is None and size != config.block_size_tokens:
        # The entry's charge would make the variant's tokens cheaper or dearer, and its rates incomparable.
        in_proportion = config.block_bytes * size / config.block_size_tokens
        raise document.error(
            (*path, "block_size_tokens"),
            f"is not the entry's {config.block_size_tokens}, so its blocks take other bytes; add block_bytes (in "
            f"proportion to the entry's that is {in_proportion:.12g}) or location_specs",
        )
    return replace(
        config,
        instance_id=variant.name,
        block_size_tokens=size,
        block_bytes=config.block_bytes if charge is None else charge,
        ttl_ns=config.ttl_ns if variant.ttl_seconds is None else whole_nanoseconds(variant.ttl_seconds),
        capacity_gb=config.capacity_gb if variant.capacity_gb is None else variant.capacity_gb,
    )
