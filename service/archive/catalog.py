"""Which segments exist."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from service.archive.chain import Chain
from service.archive.errors import Changed, NotFound, SegmentError
from service.archive.segment import FACTS_FOLDER, ChainKey, SegmentInfo, parse_path, read_info
from service.archive.store import Store, StoredFile

_READERS = 8  # footers read at once: an object store answers each after tens of milliseconds


@dataclass(frozen=True, slots=True)
class CatalogView:
    """All chains at one moment.

    Attributes:
        chains: by key.
    """

    chains: Mapping[ChainKey, Chain] = field(default_factory=dict)

    @property
    def generations(self) -> tuple[tuple[str, str], ...]:
        """(topic, generation) in order of first appearance, which is that of their earliest facts; ties by name.

        Facts that expired since count in it.

        The facts' own times are used because those of files do not survive a copy of the store.
        """
        firsts: dict[tuple[str, str], int] = {}
        for key, chain in self.chains.items():
            for segment in (*chain.expired, *chain.segments):
                generation = (key.topic, key.generation)
                firsts[generation] = min(segment.first_time_ns, firsts.get(generation, segment.first_time_ns))
        return tuple(sorted(firsts, key=lambda generation: (firsts[generation], generation)))

    @property
    def segments(self) -> tuple[SegmentInfo, ...]:
        """Every segment that counts: by generation in order of appearance, then partition, then offset."""
        order = {generation: place for place, generation in enumerate(self.generations)}
        chains = [chain for chain in self.chains.values() if chain.segments]
        chains.sort(key=lambda chain: (order[chain.key.topic, chain.key.generation], chain.key.partition))
        return tuple(segment for chain in chains for segment in chain.segments)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with any chain, a sentence each."""
        return tuple(fault for key in sorted(self.chains) for fault in self.chains[key].faults)

    def chain(self, key: ChainKey) -> Chain:
        """The chain of a key; an empty one where the store has none."""
        return self.chains.get(key, Chain(key))


class Catalog:
    """Follows the segments of a store. Methods may be called from any thread.

    It is empty until the first `refresh`. Footers are read once, and again only where a file changed.

    Args:
        store: where the segments are.
        topic: only this facts topic; None for all.
    """

    def __init__(self, store: Store, topic: str | None = None) -> None:
        self.store = store
        self._prefix = FACTS_FOLDER if topic is None else f"{FACTS_FOLDER}/{topic}"
        self._files: dict[str, _Known] = {}
        self._view = CatalogView()
        self._lock = threading.Lock()

    @property
    def view(self) -> CatalogView:
        """The chains as last seen; it does not change under the reader."""
        return self._view

    def next_offset(self, key: ChainKey) -> int:
        """Where a partition's archive goes on, as last seen.

        Raises:
            ChainBroken: its last segment can't be read.
        """
        return self._view.chain(key).next_offset

    def refresh(self, chain: ChainKey | None = None) -> None:
        """List the store and read the footers of what is new.

        Args:
            chain: look only at this one; None at all.

        Raises:
            StoreError: the store can't be reached; the view stays as it was.
        """
        prefix = self._prefix if chain is None else chain.folder
        with self._lock:
            before, files = self._view, self._files
            listed = self._list(prefix)
            while True:
                files = self._known(files, prefix, listed)
                view = before if files == self._files else _view(files)
                if not set(view.faults) - set(before.faults):
                    break
                # A listing takes a while, and may so have seen segments before they were merged, and not have seen
                # them when they were deleted for it. What two in a row show is so.
                again = self._list(prefix)
                if again == listed:
                    break
                listed = again
            self._files, self._view = files, view

    def file(self, path: str) -> StoredFile | None:
        """A segment's file as it was listed when it was read last; None where it is not known."""
        known = self._files.get(path)
        return None if known is None else known.file

    def archived_ns(self, info: SegmentInfo) -> int:
        """When the newest facts of a segment came into the store, by its clock, nanoseconds since 1970.

        Args:
            info: a segment that was listed.
        """
        return self._files[info.path].file.modified_ns if info.archived_ns is None else info.archived_ns

    def _list(self, prefix: str) -> dict[str, StoredFile]:
        return {file.path: file for file in self.store.list(prefix) if parse_path(file.path)}

    def _known(self, files: dict[str, _Known], prefix: str, listed: dict[str, StoredFile]) -> dict[str, _Known]:
        """What is known once the new ones of those listed are read."""
        known = {path: one for path, one in files.items() if path in listed or not path.startswith(f"{prefix}/")}
        new = [file for file in listed.values() if file.path not in known or known[file.path].file != file]
        if new:
            with ThreadPoolExecutor(_READERS) as readers:
                for file, entry in zip(new, readers.map(self._read, new), strict=True):
                    known.pop(file.path, None)
                    if entry is not None:  # a file may go away between the listing and the reading
                        known[file.path] = _Known(file, entry)
        return known

    def _read(self, file: StoredFile) -> SegmentInfo | SegmentError | None:
        try:
            return read_info(self.store, file.path)
        except SegmentError as error:
            return error
        except (NotFound, Changed):
            return None


@dataclass(frozen=True, slots=True)
class _Known:
    file: StoredFile
    entry: SegmentInfo | SegmentError


def _view(files: Mapping[str, _Known]) -> CatalogView:
    segments: defaultdict[ChainKey, list[SegmentInfo]] = defaultdict(list)
    damaged: defaultdict[ChainKey, list[SegmentError]] = defaultdict(list)
    for path, known in files.items():
        place = parse_path(path)
        assert place is not None, path
        if isinstance(known.entry, SegmentError):
            damaged[place[0]].append(known.entry)
        else:
            segments[place[0]].append(known.entry)
    return CatalogView({key: Chain.of(key, segments[key], damaged[key]) for key in segments.keys() | damaged.keys()})
