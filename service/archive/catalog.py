"""Which segments exist."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from service.archive.chain import Chain
from service.archive.errors import NotFound, SegmentError
from service.archive.segment import FACTS_FOLDER, ChainKey, SegmentInfo, parse_path, read_info
from service.archive.store import Store, StoredFile

_READERS = 8  # footers read at once: an object store answers each after tens of milliseconds


@dataclass(frozen=True, slots=True)
class Changes:
    """What a refresh found, in order of chain and offset.

    Attributes:
        added: segments that were not known; a replaced file counts as removed and added.
        removed: segments that are gone.
        damaged: files that turned out to be unreadable.
    """

    added: tuple[SegmentInfo, ...] = ()
    removed: tuple[SegmentInfo, ...] = ()
    damaged: tuple[SegmentError, ...] = ()


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

        The facts' own times are used because those of files do not survive a copy of the store.
        """
        firsts: dict[tuple[str, str], int] = {}
        for key, chain in self.chains.items():
            for segment in chain.segments:
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
        self._files: dict[str, tuple[str, SegmentInfo | SegmentError]] = {}
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

    def refresh(self) -> Changes:
        """List the store and read the footers of what is new.

        Raises:
            StoreError: the store can't be reached; the view stays as it was.
        """
        with self._lock:
            listed = {file.path: file for file in self.store.list(self._prefix) if parse_path(file.path)}
            new = [file for path, file in listed.items() if self.version(path) != file.version]
            gone = [path for path in self._files if path not in listed]
            if not new and not gone:
                return Changes()
            with ThreadPoolExecutor(_READERS) as readers:
                read = dict(zip([file.path for file in new], readers.map(self._read, new), strict=True))
            known = dict(self._files)
            dropped = [known.pop(path)[1] for path in (*gone, *read) if path in known]
            # A file may go away between the listing and the reading.
            found = {path: entry for path, entry in read.items() if entry is not None}
            known.update({path: (listed[path].version, entry) for path, entry in found.items()})
            self._replace(known)
        return Changes(
            added=tuple(entry for entry in found.values() if isinstance(entry, SegmentInfo)),
            removed=tuple(entry for entry in dropped if isinstance(entry, SegmentInfo)),
            damaged=tuple(entry for entry in found.values() if isinstance(entry, SegmentError)),
        )

    def version(self, path: str) -> str | None:
        """The version of a segment's file as it was read last; None where it is not known."""
        known = self._files.get(path)
        return None if known is None else known[0]

    def _read(self, file: StoredFile) -> SegmentInfo | SegmentError | None:
        try:
            return read_info(self.store, file.path)
        except SegmentError as error:
            return error
        except NotFound:
            return None

    def _replace(self, files: dict[str, tuple[str, SegmentInfo | SegmentError]]) -> None:
        segments: defaultdict[ChainKey, list[SegmentInfo]] = defaultdict(list)
        damaged: defaultdict[ChainKey, list[SegmentError]] = defaultdict(list)
        for path, (_, entry) in files.items():
            place = parse_path(path)
            assert place is not None, path
            if isinstance(entry, SegmentError):
                damaged[place[0]].append(entry)
            else:
                segments[place[0]].append(entry)
        self._files = files
        self._view = CatalogView(
            {key: Chain.of(key, segments[key], damaged[key]) for key in segments.keys() | damaged.keys()}
        )
