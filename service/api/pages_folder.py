"""Where pages are kept between runs: a folder of caches, each of which can be made again from its segment."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path

import structlog

from litehit.atomic_file import atomic_file
from service.api.pages import PagesDamaged, SegmentPages, SegmentSums, decode, encode
from service.api.rows import FactRows
from service.api.segment_reader import SegmentReader
from service.archive.segment import ChainKey, SegmentInfo

SUFFIX = ".pages"
_INDEX_FOLDER = "index"
_log = structlog.get_logger()


def default_folder(store_url: str) -> Path:
    """Beside the facts in a folder store, else below the user's cache folder."""
    if "://" not in store_url:
        return Path(store_url) / _INDEX_FOLDER
    return Path.home() / ".cache" / "litehit" / hashlib.sha256(store_url.encode()).hexdigest()[:16]


class PagesFolder:
    """Opens the pages of segments, and makes those that are not there.

    What a file holds counts only if it is whole, of this version and of this segment; else it is made again. A folder
    that can't be written to costs time at the next start and memory in this one, and is told in the log.

    Args:
        folder: where the files are; None keeps none.
        reader: reads segments.
    """

    def __init__(self, folder: Path | None, reader: SegmentReader) -> None:
        self._folder = folder
        self._reader = reader
        self._unwritable: str | None = None

    def make(self, info: SegmentInfo, parts: Sequence[SegmentPages], rows: Iterable[FactRows]) -> SegmentSums:
        """The pages of a segment, from their file or else made.

        Args:
            info: the segment.
            parts: pages, and
            rows: facts, that make up the segment; none of both, where it has to be read.

        Raises:
            ArchiveError: the segment can't be read.
        """
        kept = self._kept(info)
        if kept is not None:
            return kept
        row_groups = self._reader.row_groups(info)
        summed = [*parts, *map(SegmentPages.of, rows)]
        if not summed:
            summed = [SegmentPages.of(batch) for batch in self._reader.read(info, range(len(row_groups.rows)))]
        content = encode(SegmentSums(info, SegmentPages.joined(summed), row_groups))
        return self._keep(info, content) or decode(info, bytes(content))

    def drop(self, infos: Iterable[SegmentInfo], held: Iterable[SegmentInfo]) -> None:
        """Forget segments that are gone, but for the files of those that are held. Who has their pages keeps them."""
        for path in {self._path(info) for info in infos} - {self._path(info) for info in held}:
            if path is not None:
                self._remove(path)

    def sweep(self, held: Iterable[SegmentInfo], chains: Iterable[ChainKey]) -> None:
        """Forget what the folder has of some chains, but for the files of segments that are held."""
        if self._folder is None:
            return
        paths = {self._path(info) for info in held}
        for chain in chains:
            for path in self._chain_folder(self._folder, chain).glob(f"*{SUFFIX}"):
                if path not in paths:
                    self._remove(path)

    def _kept(self, info: SegmentInfo) -> SegmentSums | None:
        path = self._path(info)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return decode(info, content)
        except (FileNotFoundError, NotADirectoryError):  # why there is none, `_keep` will tell
            return None
        except (OSError, ValueError, PagesDamaged) as error:
            _log.warning("index_pages_rebuilt", path=str(path), reason=str(error))
            return None

    def _keep(self, info: SegmentInfo, content: memoryview) -> SegmentSums | None:
        path = self._path(info)
        if path is None:
            return None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                file.write(content)
        except OSError as error:
            if str(error) != self._unwritable:
                _log.warning("index_pages_not_kept", path=str(path), error=str(error))
            self._unwritable = str(error)
            return None
        return self._kept(info)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as error:
            _log.warning("index_pages_not_removed", path=str(path), error=str(error))

    def _path(self, info: SegmentInfo) -> Path | None:
        if self._folder is None:
            return None
        return self._chain_folder(self._folder, info.chain) / f"{info.base_offset:020d}-{info.end_offset:020d}{SUFFIX}"

    @staticmethod
    def _chain_folder(folder: Path, chain: ChainKey) -> Path:
        return folder / chain.topic / chain.generation / f"{chain.partition:05d}"
