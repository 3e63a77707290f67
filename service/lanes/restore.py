"""From where a lane's caches are rebuilt, or why they can't be.

The numbered steps are those of docs/GUARANTEES.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from litehit.config_changes import ConfigChange, core_changes
from litehit.counted import counted
from litehit.registration import Registrations
from litehit.registry import Registry
from litehit.targets import Routing
from service.errors import CannotRestore
from service.lanes.committed import Committed, RequestsTopic
from service.lanes.counterparts import counterpart, lacking
from service.lanes.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """What a restore is planned from.

    Attributes:
        committed: what the group has committed for the partition.
        low: first offset that the log still holds.
        end: the log's last stable offset.
        others: what the group has committed for all partitions; asked for where it has committed nothing for this one.
    """

    committed: Committed
    low: int
    end: int
    others: Sequence[Committed] = field(default=())


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """How a lane gets warm.

    Attributes:
        start: the first offset to read.
        target: records below it are replayed with their output suppressed; from it on they give facts.
    """

    start: int
    target: int


def reset_applies(snapshot: Snapshot, committed: Committed, group: str) -> bool:
    """Whether a snapshot is an operator's choice that the lane has yet to follow: step 1."""
    reset = snapshot.reset
    return (
        reset is not None
        and reset.group == group
        and reset.committed == committed.offset
        and snapshot.history != committed.history
    )


def is_usable(snapshot: Snapshot, committed: Committed) -> bool:
    """Whether a snapshot is of the lane's past: step 2."""
    return snapshot.next_offset <= (committed.offset or 0) and committed.history in (None, snapshot.history)


def check_committed(topic: RequestsTopic, partition: int, standing: Standing) -> None:
    """Refuse a committed offset that means nothing in the topic as it is now: step 3.

    Raises:
        CannotRestore: the topic was recreated, lost records, or has another number of partitions.
    """
    source, committed = f"{topic.name}/{partition}", standing.committed
    if committed.generation not in (None, topic.generation):
        raise CannotRestore(
            f"{source}: the committed offset {committed.offset} belongs to generation {committed.generation} of the "
            f"topic, which is now {topic.generation}: the topic was recreated; {choices(partition, 'earliest')}"
        )
    if committed.offset is not None and committed.offset > standing.end:
        raise CannotRestore(
            f"{source}: the committed offset {committed.offset} lies beyond the end of the log, {standing.end}: the "
            f"topic was recreated or has lost records; {choices(partition, 'cold', 'earliest')}"
        )
    known = [committed] if committed.offset is not None else standing.others
    for count in sorted({one.partitions for one in known if one.partitions is not None} - {topic.partitions}):
        _refuse_count(topic, partition, count)


def plan_restore(topic: RequestsTopic, partition: int, standing: Standing, snapshot: Snapshot | None) -> RestorePlan:
    """Plan the replay of a partition, from a usable snapshot or from the start of its log: step 4.

    Raises:
        CannotRestore: requests that the caches depend on are gone.
    """
    committed = standing.committed
    start = 0 if snapshot is None else snapshot.next_offset
    if snapshot is not None and snapshot.topic.partitions != topic.partitions:
        _refuse_count(topic, partition, snapshot.topic.partitions)
    if start < standing.low:
        found = "there is no usable snapshot" if snapshot is None else f"the newest usable snapshot ends at {start}"
        raise CannotRestore(
            f"{topic.name}/{partition}: the requests before offset {standing.low} have expired and {found}, so the "
            f"caches {'there' if committed.offset is None else f'at the committed offset {committed.offset}'} can't be "
            f"rebuilt and the lane would start cold; {choices(partition, 'cold', 'earliest', 'snapshot')}"
        )
    if snapshot is None and committed.history not in (None, 0):
        raise CannotRestore(
            f"{topic.name}/{partition}: the caches at the committed offset {committed.offset} go back to a reset "
            f"(history {committed.history}) of which there is no usable snapshot; "
            f"{choices(partition, 'cold', 'earliest', 'snapshot')}"
        )
    return RestorePlan(start, max(start, committed.offset or 0))


def check_configuration(topic: RequestsTopic, partition: int, snapshot: Snapshot, registry: Registry) -> None:
    """Refuse caches that were filled under another configuration than the registry's: step 5.

    Raises:
        CannotRestore: names each difference.
    """
    differences: list[ConfigChange] = []
    registrations = Registrations(registry, snapshot.registrations)
    for instance in snapshot.instances:
        registered = counterpart(instance, registrations)
        if registered is not None:
            differences += core_changes(instance.config, registered)
    if differences:
        raise configuration_refused(topic, partition, snapshot.path, differences)


def check_targets(
    topic: RequestsTopic, partition: int, snapshot: Snapshot, registry: Registry, routing: Routing
) -> None:
    """Refuse caches beside which another one would begin cold that is given the same requests: step 5.

    Raises:
        CannotRestore: requests went to other instances, or an instance or variant is not in the snapshot.
    """
    if not snapshot.instances:
        return
    if snapshot.routing != routing:
        raise CannotRestore(
            f"{topic.name}/{partition}: requests go {routing.described()} now, and went {snapshot.routing.described()} "
            f"when the caches in {snapshot.path} were filled; put the setting back, or "
            f"{choices(partition, 'cold', 'earliest')}"
        )
    if snapshot.reset is not None:  # an operator chose to go on with what is there
        return
    missing = list(lacking(snapshot, Registrations(registry, snapshot.registrations), routing))
    if missing:
        named = ", ".join(f"{instance_id!r} (beside {of!r})" for instance_id, of in missing)
        raise CannotRestore(
            f"{topic.name}/{partition}: {snapshot.path} has no cache of {named}, which would begin cold beside a warm "
            f"one that had the same requests; take it out of the registry again, or "
            f"{choices(partition, 'snapshot', 'cold', 'earliest')}"
        )


def configuration_refused(
    topic: RequestsTopic, partition: int, snapshot_path: str | None, differences: Sequence[ConfigChange]
) -> CannotRestore:
    """What to say of caches that were filled under another configuration: a snapshot's, or those of the log's start."""
    kept = "caches that were replayed" if snapshot_path is None else f"caches in {snapshot_path}"
    return CannotRestore(
        f"{topic.name}/{partition}: the registry's configuration is not that of the {kept}: "
        f"{'; '.join(map(str, differences))}; put it back, or {choices(partition, 'cold', 'earliest')}"
    )


def choices(partition: int, *ways: str) -> str:
    """What an operator may do, as the end of a sentence."""
    meanings = {
        "cold": "cold goes on with empty caches",
        "earliest": "earliest reads the log again from its start and gives its facts again",
        "snapshot": "snapshot goes on with the newest snapshot's caches, which lack what came since and what is new",
    }
    told = ", ".join(meanings[way] for way in ways)
    return f"choose with litehit lanes reset --partition {partition} --to {'|'.join(ways)}: {told}"


def _refuse_count(topic: RequestsTopic, partition: int, count: int) -> None:
    raise CannotRestore(
        f"{topic.name}/{partition}: the topic has {counted(topic.partitions, 'partition')}, and had {count} when the "
        f"offsets were committed: instances may have moved to other partitions than those that hold their caches; "
        f"{choices(partition, 'cold', 'earliest', 'snapshot')}"
    )
