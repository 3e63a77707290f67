"""What a registry file would change for lanes whose snapshots lie in a store, before anybody restarts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from litehit.config_changes import ConfigChange, config_changes
from litehit.registration import Registrations
from litehit.registry import Registry
from service.archive.store import Store
from service.errors import SnapshotDamaged
from service.lanes.counterparts import counterpart, lacking
from service.lanes.snapshot import Snapshot, decode, offset_of, snapshots_of_topic


@dataclass(frozen=True, slots=True)
class Compared:
    """A file against one partition's newest snapshot.

    Attributes:
        path: the snapshot.
        changes: settings that are other than there, by instance.
        forgotten: instances there that the file no longer covers: their caches are kept, their requests refused.
        lacking: variants, and under a fan-out instances, that would begin cold beside warm ones: a restart is refused.
    """

    path: str
    changes: tuple[ConfigChange, ...]
    forgotten: tuple[str, ...]
    lacking: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether caches are of other settings, so that the lane would stop instead of going on under the file."""
        return any(change.is_core for change in self.changes)


def compare_with_store(registry: Registry, store: Store, requests_topic: str) -> list[Compared]:
    """Compare a file with the newest snapshot of each partition of a topic, of the generation used last.

    What the stream has registered since a snapshot is not known.

    Raises:
        StoreError: the store can't be read.
    """
    newest: dict[str, dict[int, Snapshot]] = {}
    for snapshot in _newest_snapshots(store, requests_topic):
        newest.setdefault(snapshot.topic.generation, {})[snapshot.partition] = snapshot
    if not newest:
        return []
    last = max(newest.values(), key=lambda of: max(snapshot.taken_at for snapshot in of.values()))
    return [compare(registry, snapshot) for _, snapshot in sorted(last.items())]


def compare(registry: Registry, snapshot: Snapshot) -> Compared:
    """Compare a file with one snapshot."""
    registrations = Registrations(registry, snapshot.registrations)
    changes: list[ConfigChange] = []
    forgotten = []
    for instance in snapshot.instances:
        now = counterpart(instance, registrations)
        if now is None:
            forgotten.append(instance.config.instance_id)
        else:
            changes += config_changes(instance.config, now)
    lacks = tuple(instance_id for instance_id, _ in lacking(snapshot, registrations, snapshot.routing))
    return Compared(snapshot.path, tuple(changes), tuple(forgotten), lacks)


def _newest_snapshots(store: Store, requests_topic: str) -> Iterator[Snapshot]:
    """Of each partition of each generation, the newest that can be read."""
    folders: dict[str, list[str]] = {}
    for file in store.list(snapshots_of_topic(requests_topic)):
        if offset_of(file.path) is not None:
            folders.setdefault(file.path.rpartition("/")[0], []).append(file.path)
    for paths in folders.values():
        for path in sorted(paths, reverse=True):
            try:
                yield decode(path, store.read(path))
            except SnapshotDamaged:
                continue
            break
