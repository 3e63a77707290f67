"""The end of a chain when an archiver starts: proven to be readable, or made so."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from litehit.counted import counted
from service.archive.catalog import Catalog
from service.archive.covered import resolve_overlaps
from service.archive.errors import CannotSetAside, ChainBroken, OffsetsMissing, SegmentError
from service.archive.segment import ChainKey, read_table

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Held:
    """The offsets that a partition of the facts topic holds.

    Attributes:
        low: the first one.
        high: its last stable offset.
    """

    low: int
    high: int

    def missing(self, chain: ChainKey, offset: int) -> OffsetsMissing | None:
        """Why reading can't go on at an offset; None where it can."""
        return None if self.low <= offset <= self.high else OffsetsMissing(str(chain), offset, self.low, self.high)


def find_end(catalog: Catalog, key: ChainKey, held: Held, *, accept_gap: bool) -> int:
    """Where a partition's archive goes on.

    The last segment is read whole, since its facts are the likeliest to stand on the topic still. What is damaged at
    the end of the chain is set aside where the topic holds its facts, so that they are archived again under the name
    that becomes free; with `accept_gap` also where it holds them in part. Damage before a readable segment stays as it
    is: a hole, which the chain reports. What reaches over the end, from a base before it, becomes a segment of its own.

    Args:
        catalog: refreshed; it is refreshed again after a change.
        key: the partition.
        held: what the topic holds.
        accept_gap: go on although offsets are missing.

    Raises:
        ChainBroken: the end is damaged and can't be archived again, or segments contradict each other.
        OffsetsMissing: the end is damaged, and the topic ends before it.
        StoreError: the store can't be used.
    """
    resolve_overlaps(catalog, key)
    while damaged := _damaged_end(catalog, key):
        error, *_ = damaged
        begin = _end_without(catalog, key, damaged)
        missing = held.missing(key, begin)
        if missing is not None and not missing.expired:
            raise missing
        if missing is not None and not accept_gap:
            raise ChainBroken(
                f"{key}: the last segment can't be read: {error}; the topic begins at offset {held.low}, so that "
                f"{counted(held.low - begin, 'offset')} from {begin} on can't be archived again; "
                f"restore the file from a copy and restart, or restart with --accept-gap (LITEHIT_ACCEPT_GAP=true), "
                f"which sets it aside and records the gap in the next segment"
            )
        for error in damaged:
            _set_aside(catalog, key, error)
        catalog.refresh()
    return catalog.next_offset(key)


def _damaged_end(catalog: Catalog, key: ChainKey) -> tuple[SegmentError, ...]:
    chain = catalog.view.chain(key)
    if chain.damaged_end or not chain.segments:
        return chain.damaged_end
    try:
        read_table(catalog.store, chain.segments[-1].path)
    except SegmentError as error:
        return (error,)
    return ()


def _end_without(catalog: Catalog, key: ChainKey, damaged: tuple[SegmentError, ...]) -> int:
    paths = {error.path for error in damaged}
    chain = catalog.view.chain(key)
    return max([chain.start_offset, *(one.end_offset for one in chain.segments if one.path not in paths)])


def _set_aside(catalog: Catalog, key: ChainKey, error: SegmentError) -> None:
    file = catalog.file(error.path)
    assert file is not None, error.path
    try:
        aside = catalog.store.set_aside(error.path, file.version)
    except CannotSetAside as refused:
        raise ChainBroken(f"{key}: the last segment can't be read: {error}; {refused}") from None
    if aside is not None:
        _log.error("segment_set_aside", chain=str(key), error=str(error), set_aside_as=aside)
