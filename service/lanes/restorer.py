"""Restores lanes, one at a time, beside the loop that goes on with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeAlias

import structlog

from litehit.config_changes import ConfigChange
from litehit.errors import StateError
from litehit.registry import Registry
from litehit.targets import AS_NAMED, Routing
from service.archive.store import StoredFile
from service.background import in_background
from service.errors import CannotRestore
from service.lanes.committed import Committed
from service.lanes.lane import Lane
from service.lanes.restore import (
    RestorePlan,
    Standing,
    check_committed,
    check_configuration,
    check_targets,
    configuration_refused,
    is_usable,
    plan_restore,
    reset_applies,
)
from service.lanes.snapshot import Snapshot
from service.lanes.snapshots import Snapshots

log = structlog.get_logger()

_Basis: TypeAlias = tuple[Standing, list[StoredFile]]
MakeLane: TypeAlias = Callable[[int, Snapshot | None], Lane]


@dataclass(frozen=True, slots=True)
class Restored:
    """A lane that is ready to read.

    Attributes:
        lane: with the caches of the snapshot, or empty ones.
        plan: what to read, and from where on it gives facts.
        snapshot: where the caches come from; None for the start of the log.
        end: the log's last stable offset.
    """

    lane: Lane
    plan: RestorePlan
    snapshot: Snapshot | None
    end: int


@dataclass(frozen=True, slots=True)
class _Refused:
    basis: _Basis
    error: CannotRestore


class Restorer:
    """Finds where lanes go on.

    Args:
        snapshots: of the requests topic.
        group: the lanes' consumer group.
        registry: the instances that are known.
        make_lane: a new lane of a partition, from a snapshot or empty.
        routing: where its requests go.
    """

    def __init__(
        self,
        snapshots: Snapshots,
        group: str,
        registry: Registry,
        make_lane: MakeLane,
        routing: Routing = AS_NAMED,
    ) -> None:
        self._routing = routing
        self._snapshots = snapshots
        self._topic = snapshots.topic
        self._group = group
        self._registry = registry
        self._make_lane = make_lane
        # What a restore failed on, by partition: until something of it changes, the answer stays.
        self._refused: dict[int, _Refused] = {}
        self._bases: dict[int, _Basis] = {}
        self._sources: dict[int, str | None] = {}  # the snapshot that each was restored from; None for the log's start

    def start(self, partition: int, ask: Callable[[int], Standing]) -> Future[Restored]:
        """Begin a restore in a thread of its own, in which Kafka is asked first; the future ends as `restore` does."""
        return in_background(f"restore-{partition}", lambda: self.restore(partition, ask(partition)))

    def restore(self, partition: int, standing: Standing) -> Restored:
        """Restore a lane.

        Raises:
            CannotRestore: it would start cold.
            StoreError: the store can't be read now.
        """
        # Requests that came in since change nothing.
        basis = replace(standing, end=0), self._snapshots.files(partition)
        refused = self._refused.get(partition)
        if refused is not None and refused.basis == basis:
            raise refused.error
        self._bases[partition] = basis
        try:
            restored = self._restore(partition, standing)
        except CannotRestore as error:
            self._refused[partition] = _Refused(basis, error)
            raise
        self._sources[partition] = None if restored.snapshot is None else restored.snapshot.path
        return restored

    def refuse(self, partition: int, changes: Sequence[ConfigChange]) -> CannotRestore:
        """What was replayed is of another configuration than the registry's (step 5); it is not replayed again in vain.

        Args:
            partition: whose lane was restored last.
            changes: what is another.

        Returns:
            What to say of it.
        """
        error = configuration_refused(self._topic, partition, self._sources[partition], changes)
        self._refused[partition] = _Refused(self._bases[partition], error)
        return error

    def _restore(self, partition: int, standing: Standing) -> Restored:
        if partition >= self._topic.partitions:
            raise CannotRestore(
                f"{self._topic.name}/{partition}: the topic has got more partitions than the {self._topic.partitions} "
                f"it had when this process started; restart every lanes process"
            )
        for restored in self._from_snapshots(partition, standing):
            return restored
        check_committed(self._topic, partition, standing)
        return self._from_start(partition, standing)

    def restore_earliest(self, partition: int, standing: Standing) -> Restored:
        """A lane from as far back as its caches at the committed offset can be rebuilt; errors are `restore`'s."""
        check_committed(self._topic, partition, standing)
        try:
            return self._from_start(partition, standing)
        except CannotRestore:
            *_, earliest = (None, *self._from_snapshots(partition, standing))
            if earliest is None:
                raise
            return earliest

    def _from_start(self, partition: int, standing: Standing) -> Restored:
        plan = plan_restore(self._topic, partition, standing, None)
        return Restored(self._make_lane(partition, None), plan, None, standing.end)

    def _from_snapshots(self, partition: int, standing: Standing) -> Iterator[Restored]:
        """What each snapshot gives, newest first: the steps of a restore in docs/GUARANTEES.md."""
        for snapshot in self._snapshots.readable(partition):
            if reset_applies(snapshot, standing.committed, self._group):
                # 1. The operator has chosen: what is committed counts no more.
                present = replace(standing, committed=Committed(None), others=())
            elif is_usable(snapshot, standing.committed):  # 2.
                present = standing
            else:
                log.info("snapshot_skipped", path=snapshot.path, committed=standing.committed.offset)
                continue
            check_committed(self._topic, partition, present)  # 3.
            plan = plan_restore(self._topic, partition, present, snapshot)  # 4.
            check_targets(self._topic, partition, snapshot, self._registry, self._routing)  # 5.
            if plan.start == plan.target:
                # Where requests are replayed first, registrations among them may yet change what the caches are of.
                check_configuration(self._topic, partition, snapshot, self._registry)
            try:
                lane = self._make_lane(partition, snapshot)
            except StateError as error:
                log.error("snapshot_damaged", path=snapshot.path, error=str(error))
                continue
            yield Restored(lane, plan, snapshot, standing.end)
