"""Which instances a request goes to."""

from __future__ import annotations

from dataclasses import dataclass

from litehit.errors import OptionError
from litehit.registration import Registrations
from litehit.registry import InstanceConfig, Registry
from litehit.request import check_instance_option


@dataclass(frozen=True, slots=True)
class Routing:
    """Whether requests go to other instances than the one they name.

    Attributes:
        fanout_all_instances: each goes to every instance that is registered exactly.
        override_instance_id: each goes to this instance; excludes `fanout_all_instances`.

    Raises:
        OptionError: both are given, or the id can't be one.
    """

    fanout_all_instances: bool = False
    override_instance_id: str | None = None

    def __post_init__(self) -> None:
        if self.fanout_all_instances and self.override_instance_id is not None:
            raise OptionError(
                f"fanout_all_instances and override_instance_id {self.override_instance_id!r} exclude each other; "
                f"give one of them"
            )
        if self.override_instance_id is not None:
            check_instance_option(self.override_instance_id)

    def __bool__(self) -> bool:
        """Whether all requests go the same way, whatever instance they name."""
        return self.fanout_all_instances or self.override_instance_id is not None

    def described(self) -> str:
        """Where requests go, as the rest of a sentence."""
        if self.fanout_all_instances:
            return "to all instances registered by exact id (fanout_all_instances)"
        if self.override_instance_id is not None:
            return f"to {self.override_instance_id!r} (override_instance_id)"
        return "to the instances that they name"

    def pooled(self, registry: Registry | Registrations) -> str | None:
        """The instance that every request is taken to name; None: the one it does name.

        Raises:
            UnknownInstance: of `override_instance_id`.
            OptionError: `fanout_all_instances` without an instance registered exactly.
        """
        if self.override_instance_id is not None:
            return registry.resolve_addressed(self.override_instance_id).instance_id
        if not self.fanout_all_instances:
            return None
        if not registry.exact_ids:
            raise OptionError(
                "fanout_all_instances needs instances that are registered by exact id; the registry has none"
            )
        return registry.exact_ids[0]

    def targets(self, registry: Registry | Registrations, instance_id: str) -> tuple[InstanceConfig, ...]:
        """The instances that a request goes to, each before its variants: in the order of the facts.

        Args:
            registry: the instances.
            instance_id: what the request is taken to name.

        Raises:
            UnknownInstance: no registration covers it, or it is a variant's.
        """
        addressed = registry.exact_ids if self.fanout_all_instances else (instance_id,)
        return tuple(
            config for one in addressed for config in (registry.resolve_addressed(one), *registry.variants(one))
        )


AS_NAMED = Routing()
"""Each request goes to the instance that it names, and to its variants."""
