"""The instances of a lane: each with a core and counters of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from litehit.config_changes import core_changes
from litehit.core import LiteHit
from litehit.errors import RegistrationNeedsReset
from litehit.facts import FactBatch
from litehit.fan_out import EngineGroup, FanOut
from litehit.instance import InstanceEngine
from litehit.prepared import Prepared
from litehit.registration import Registration, Registrations
from litehit.registry import InstanceConfig, Registry
from litehit.repeats import RecentByInstance
from litehit.request import RequestBatch
from litehit.targets import AS_NAMED, Routing
from litehit.window_requests import WindowRequests
from service.errors import CoreChanged
from service.lanes.counterparts import counterpart, is_of
from service.lanes.counters import Charge, OnlineCounters
from service.lanes.frozen_lane import FrozenInstance, FrozenLane
from service.lanes.snapshot import InstanceSnapshot, Snapshot
from service.lanes.status import InstanceStatus


class LaneInstances:
    """Cores and counters by instance id.

    An instance of a snapshot is analysed as the snapshot says until `go_live`: what is replayed became facts then. One
    that is registered no more is kept as it is, for a registry that knows it again.

    Args:
        registry: the instances that are known.
        repeats_window: trace ids an instance by which repeats are told; 0: they are not.
        restored: those of a snapshot, whose core settings are the registry's.
        routing: where requests go.

    Attributes:
        is_recharged: it is live under a registry that has other settings for one of them than the snapshot, which no
            later snapshot says yet.

    Raises:
        StateError: a core of the snapshot is none.
    """

    def __init__(
        self,
        registry: Registry,
        repeats_window: int = 0,
        restored: Snapshot | None = None,
        routing: Routing = AS_NAMED,
    ) -> None:
        self._registrations = Registrations(registry, restored.registrations if restored is not None else ())
        self._routing = routing
        self._pooled = routing.pooled(self._registrations)
        self._engines: dict[str, InstanceEngine] = {}
        self._fan_outs: dict[str, FanOut] = {}
        self._counters: dict[str, OnlineCounters] = {}
        self._repeats_window = repeats_window
        self._recent = RecentByInstance(repeats_window if restored is None else restored.repeats_window)
        self._unregistered: dict[str, InstanceSnapshot] = {}
        self.is_recharged = False
        self._is_live = False
        self._has_changed = self._recent.window != repeats_window
        for one in restored.instances if restored is not None else ():
            instance_id = one.config.instance_id
            registered = counterpart(one, self._registrations)
            if registered is None:
                self._unregistered[instance_id] = one
                continue
            self._has_changed |= registered != one.config
            self._restore(one, registered)

    def routed(self, requests: WindowRequests) -> WindowRequests:
        """The requests, each naming the instance that it is taken to name."""
        if self._pooled is None:
            return requests
        return replace(requests, instances=(self._pooled,), instance_of=np.zeros(len(requests), np.int64))

    def fan_out(self, instance_id: str) -> FanOut:
        """Where the requests go that name an instance.

        Raises:
            UnknownInstance: no registration covers it.
        """
        fan_out = self._fan_outs.get(instance_id)
        return self._fan_out(instance_id) if fan_out is None else fan_out

    def repeats(self, instance_id: str, trace_ids: Sequence[str]) -> Sequence[bool]:
        """Which of some requests of an instance, that its engines take, were sent before; they are remembered now.

        Nothing is said, and remembered, of any where repeats are not told.
        """
        if not self._recent.window:
            return ()
        return [self._recent.is_repeat(instance_id, trace_id) for trace_id in trace_ids]

    def register(self, registration: Registration) -> None:
        """Let a registration apply from here on.

        Raises:
            RegistrationRefused: it does not fit; nothing has changed.
        """
        config = self._registrations.propose(registration)
        instance_id = registration.instance_id
        engine, kept = self._engines.get(instance_id), self._kept(instance_id)
        if engine is not None:
            # What it leaves out is as it is for this record: while records are replayed, as it was then.
            config = registration.applied_to(engine.config)
        elif kept is not None:
            engine = InstanceEngine(kept.config, LiteHit.from_state(kept.core))
        if engine is not None:
            changes = core_changes(engine.config, config)
            if registration.reset or (changes and engine.core.is_fresh()):
                engine = InstanceEngine(config)
            elif changes:
                raise RegistrationNeedsReset(instance_id, changes)
            engine.config = config
            if kept is not None:
                self._restore(kept, config)
                del self._unregistered[instance_id]
            else:
                self._counters[instance_id] = OnlineCounters(config, self._counters[instance_id].copy_sums())
            self._engines[instance_id] = engine
        self._registrations.add(registration)
        self._fan_outs.clear()

    def _kept(self, instance_id: str) -> InstanceSnapshot | None:
        """What is kept of an instance that was registered no more; nothing of a variant of its id, or of none."""
        kept = self._unregistered.get(instance_id)
        return kept if kept is not None and is_of(kept, self._registrations) else None

    def _fan_out(self, instance_id: str) -> FanOut:
        """The engines of what a request names; those that are not there are made."""
        configs = self._routing.targets(self._registrations, instance_id)
        fan_out = self._fan_outs[instance_id] = FanOut([self._engine(config) for config in configs])
        return fan_out

    def _engine(self, config: InstanceConfig) -> InstanceEngine:
        instance_id = config.instance_id
        engine = self._engines.get(instance_id)
        if engine is None:
            engine = self._engines[instance_id] = InstanceEngine(config)
            self._counters[instance_id] = OnlineCounters(config)
            # What had this id as a variant, or as none, is another one and gives way.
            self._unregistered.pop(instance_id, None)
        return engine

    def go_live(self) -> None:
        """From here on facts are new ones: what the registry says of their charge applies, and the repeats' window.

        Raises:
            CoreChanged: caches are not of its configuration; nothing has changed.
        """
        if self._is_live:
            return
        configs = {instance_id: self._registrations.resolve(instance_id) for instance_id in self._engines}
        changes = [
            change
            for instance_id, engine in sorted(self._engines.items())
            for change in core_changes(engine.config, configs[instance_id])
        ]
        if changes:
            raise CoreChanged(changes)
        if self._recent.window != self._repeats_window:
            self._recent.resize(self._repeats_window)
        for instance_id, engine in self._engines.items():
            engine.config = configs[instance_id]
        if self._engines:
            # What an operator let begin with an empty cache is in the next snapshot, also without a request by then.
            addressed = [one for one in self._engines if self._registrations.variant_base(one) is None]
            for instance_id in addressed if self._pooled is None else [self._pooled]:
                self._fan_out(instance_id)
        self._is_live, self.is_recharged = True, self._has_changed

    def process(self, group: EngineGroup, requests: RequestBatch) -> Iterator[tuple[int, FactBatch]]:
        """The facts of some requests, counted: those of each engine, with its place among a request's facts."""
        prepared = Prepared(requests)
        for place, engine in zip(group.places, group.engines, strict=True):
            config = engine.config
            facts = engine.process_prepared(prepared)
            self._counters[config.instance_id].add(Charge(config.block_size_tokens, config.block_bytes), facts)
            yield place, facts

    def status(self) -> tuple[InstanceStatus, ...]:
        """Each instance as it is now, by instance id."""
        return tuple(
            InstanceStatus(
                engine.config,
                engine.core.current_unique_blocks(),
                engine.core.memory_usage_bytes(),
                self._counters[instance_id].totals(),
                self._registrations.variant_base(instance_id) is not None,
            )
            for instance_id, engine in sorted(self._engines.items())
        )

    def freeze(self, partition: int, next_offset: int, history: int) -> FrozenLane:
        """A copy of all of it."""
        self.is_recharged = False
        instances = tuple(
            FrozenInstance(
                engine.config,
                engine.core.freeze(),
                self._counters[instance_id].copy_sums(),
                self._recent.digests(instance_id),
                self._registrations.variant_base(instance_id) is not None,
            )
            for instance_id, engine in self._engines.items()
        )
        return FrozenLane(
            partition,
            next_offset,
            history,
            instances,
            tuple(self._unregistered.values()),
            self._registrations.stated,
            self._recent.window,
            self._routing,
        )

    def _restore(self, kept: InstanceSnapshot, counted: InstanceConfig) -> None:
        """Go on with an instance of a snapshot, counted at the slots of a configuration."""
        instance_id = kept.config.instance_id
        self._engines[instance_id] = InstanceEngine(kept.config, LiteHit.from_state(kept.core))
        self._counters[instance_id] = OnlineCounters(counted, kept.sums)
        self._recent.restore(instance_id, kept.traces)
