"""What a stream itself says of an instance: the settings that it states, over those of the registry file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from litehit.errors import RegistrationRefused, UnknownInstance
from litehit.registry import InstanceConfig, Registry, is_glob

IN_BAND_GROUP = "in-band"
"""The group that is shown for an instance that only the stream registers."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration of one instance. What it leaves out (None) stays as it is.

    Attributes:
        instance_id: the instance, no glob.
        block_size_tokens: tokens of one analysis block.
        trace_block_size_tokens: tokens of one block as the producer hashed it, a divisor of `block_size_tokens`, with
            which alone it is stated; None beside it: the same.
        block_bytes: bytes of one analysis block.
        enable_prefix_hash: the producer's keys must be chained.
        ttl_ns: time to live of a block in nanoseconds; 0 = off.
        capacity_gb: the configured slots, in binary GB.
        reset: the instance begins with an empty cache.
    """

    instance_id: str
    block_size_tokens: int | None = None
    trace_block_size_tokens: int | None = None
    block_bytes: int | None = None
    enable_prefix_hash: bool | None = None
    ttl_ns: int | None = None
    capacity_gb: tuple[float, ...] | None = None
    reset: bool = False

    def over(self, earlier: Registration | None) -> Registration:
        """What both state, this one where they differ; `reset` has happened and is not kept."""
        stated = {} if earlier is None else earlier._stated()
        return Registration(self.instance_id, **(stated | self._stated()))

    def applied_to(self, base: InstanceConfig | None) -> InstanceConfig:
        """The configuration that it makes of another one.

        Args:
            base: what the registry file says; None: nothing.

        Raises:
            RegistrationRefused: what it states is not enough by itself.
        """
        stated = self._stated()
        if base is None:
            missing = [name for name in ("block_size_tokens", "block_bytes") if name not in stated]
            if missing:
                raise RegistrationRefused(
                    self.instance_id,
                    f"the registry file does not cover it, so its first registration must state "
                    f"{' and '.join(missing)}",
                )
            base = InstanceConfig(self.instance_id, IN_BAND_GROUP, 1, 1, 1, False, 0, ())
        return replace(base, **stated)

    def _stated(self) -> dict[str, Any]:
        stated: dict[str, Any] = {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}
        if "block_size_tokens" in stated:
            stated.setdefault("trace_block_size_tokens", self.block_size_tokens)
        return stated


_SETTINGS = tuple(field.name for field in fields(Registration) if field.name not in {"instance_id", "reset"})


class Registrations:
    """The registry file's instances, and over them what a stream has registered: that wins, setting by setting.

    Args:
        registry: the file.
        stated: what was registered before, one an instance.

    Attributes:
        registry: the file; another one may take its place.
    """

    def __init__(self, registry: Registry, stated: Iterable[Registration] = ()) -> None:
        self.registry = registry
        self._stated = {one.instance_id: one for one in stated}

    @property
    def stated(self) -> tuple[Registration, ...]:
        """All that the stream has registered, one an instance, by instance id."""
        return tuple(one for _, one in sorted(self._stated.items()))

    @property
    def exact_ids(self) -> tuple[str, ...]:
        """The ids that the file registers exactly, in its order."""
        return self.registry.exact_ids

    def variant_base(self, instance_id: str) -> str | None:
        """The instance whose variant an id is in the file; None where it is no variant's."""
        return self.registry.variant_base(instance_id)

    def resolve(self, instance_id: str) -> InstanceConfig:
        """How an instance is analysed.

        Raises:
            UnknownInstance: neither the file nor the stream says it; or the file no longer says what the stream left
                out.
        """
        stated = self._stated.get(instance_id)
        if stated is None:
            return self.registry.resolve(instance_id)
        try:
            return stated.applied_to(self._base(instance_id))
        except RegistrationRefused:
            raise UnknownInstance(instance_id) from None

    def resolve_addressed(self, instance_id: str) -> InstanceConfig:
        """How the instance is analysed that a request names.

        Raises:
            UnknownInstance: as `resolve`.
            VariantAddressed: it is a variant, which has no requests of its own.
        """
        self.registry.refuse_variant(instance_id)
        return self.resolve(instance_id)

    def variants(self, instance_id: str) -> tuple[InstanceConfig, ...]:
        """The variants of an instance: the file's, each as it may have been registered itself."""
        return tuple(self.resolve(config.instance_id) for config in self.registry.variants(instance_id))

    def propose(self, registration: Registration) -> InstanceConfig:
        """How an instance would be analysed after a registration.

        Raises:
            RegistrationRefused: it can't be.
        """
        instance_id = registration.instance_id
        if is_glob(instance_id):
            raise RegistrationRefused(instance_id, "it is a glob; register exact ids, and globs in the registry file")
        config = registration.over(self._stated.get(instance_id)).applied_to(self._base(instance_id))
        base = self.registry.variant_base(instance_id)
        kin = self.variants(instance_id) if base is None else (self.resolve(base),)
        for other in kin:
            # A request is cut into blocks once, for all of them.
            if other.trace_block_size_tokens != config.trace_block_size_tokens:
                raise RegistrationRefused(
                    instance_id,
                    f"trace_block_size_tokens {config.trace_block_size_tokens} is not that of {other.instance_id!r}, "
                    f"{other.trace_block_size_tokens}, which is given the same requests; change both in the registry "
                    f"file",
                )
        return config

    def add(self, registration: Registration) -> None:
        """Keep what a registration states, once it was found to be possible."""
        instance_id = registration.instance_id
        self._stated[instance_id] = registration.over(self._stated.get(instance_id))

    def _base(self, instance_id: str) -> InstanceConfig | None:
        try:
            return self.registry.resolve(instance_id)
        except UnknownInstance:
            return None
