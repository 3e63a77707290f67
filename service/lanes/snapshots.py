"""The snapshots of the lanes in the store: written whole, three kept, read newest first."""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from service.archive.errors import AlreadyExists
from service.archive.store import Store, StoredFile
from service.crash_points import CrashPoint, crash_point
from service.errors import SnapshotDamaged
from service.lanes.committed import RequestsTopic
from service.lanes.snapshot import Snapshot, decode, encode, generation_folder, offset_of, snapshot_folder

log = structlog.get_logger()

KEPT = 3
"""Snapshots of a partition that are kept: the one just written and those before it."""


class Snapshots:
    """The snapshots of one generation of a requests topic. Every method raises StoreError where the store fails.

    Args:
        store: where they are.
        topic: whose.
    """

    def __init__(self, store: Store, topic: RequestsTopic) -> None:
        self.topic = topic
        self._store = store

    def files(self, partition: int) -> list[StoredFile]:
        """A partition's snapshots, newest first; nothing is known of their content."""
        found = self._store.list(snapshot_folder(self.topic, partition))
        return [file for file in reversed(found) if offset_of(file.path) is not None]

    def read(self, path: str) -> Snapshot:
        """Read a snapshot.

        Raises:
            SnapshotDamaged: it can't be used.
            NotFound: it is gone.
        """
        return decode(path, self._store.read(path))

    def readable(self, partition: int) -> Iterator[Snapshot]:
        """A partition's snapshots, newest first; damaged ones are told in the log."""
        for file in self.files(partition):
            try:
                yield self.read(file.path)
            except SnapshotDamaged as error:
                log.error("snapshot_damaged", path=file.path, error=error.reason)

    def write(self, snapshot: Snapshot) -> int:
        """Write a snapshot (step 3) and delete those that it makes superfluous (step 4); its size in bytes.

        A file of its name is replaced unless it says the same: it is damaged, or of a history that was given up.
        """
        content = encode(snapshot)
        crash_point(CrashPoint.MID_SNAPSHOT)
        try:
            self._store.create(snapshot.path, content)
        except AlreadyExists:
            if not self._says_the_same(snapshot):
                self._store.delete(snapshot.path)
                self._store.create(snapshot.path, content)
        # Later ones, if any, may be of use to a group that is ahead of this one.
        before = [file.path for file in self.files(snapshot.partition) if file.path <= snapshot.path]
        self._delete(before[KEPT:])
        return len(content)

    def replace_all(self, snapshot: Snapshot) -> None:
        """Make a snapshot the only one of its partition."""
        self._store.delete(snapshot.path)
        self._store.create(snapshot.path, encode(snapshot))
        self._delete([file.path for file in self.files(snapshot.partition) if file.path != snapshot.path])

    def delete_all(self) -> None:
        """Delete the snapshots of every partition, also of those that the topic has no more."""
        found = self._store.list(generation_folder(self.topic))
        self._delete([file.path for file in found if offset_of(file.path) is not None])

    def _says_the_same(self, snapshot: Snapshot) -> bool:
        try:
            present = self.read(snapshot.path)
        except SnapshotDamaged as error:
            log.error("snapshot_damaged", path=snapshot.path, error=error.reason)
            return False
        return (present.topic, present.history) == (snapshot.topic, snapshot.history)

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            self._store.delete(path)
            log.info("snapshot_deleted", path=path)
