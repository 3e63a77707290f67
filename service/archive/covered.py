"""Segments whose offsets others cover: what is left of a merge that was broken off, or an archiver's that slept."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import structlog

from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.errors import AlreadyExists, ChainBroken, Changed, NotFound
from service.archive.segment import ChainKey, SegmentInfo, damage, describe, open_segment
from service.archive.segment_writer import encode
from service.archive.store import Store
from service.crash_points import CrashPoint, crash_point

_log = structlog.get_logger()


def delete_superseded(catalog: Catalog, key: ChainKey) -> int:
    """Delete the segments of a chain that do not count, once those that count were read and found to hold their facts.

    Args:
        catalog: refreshed.
        key: the chain.

    Returns:
        How many were deleted.

    Raises:
        ChainBroken: a segment holds other facts than those that count.
        SegmentError: a segment can't be read.
        StoreError: the store can't be used, or a segment changed meanwhile: refresh and try again.
    """
    chain = catalog.view.chain(key)
    for info in chain.superseded:
        check_agreement(catalog.store, chain, info)
        catalog.store.delete(info.path)
        _log.info("superseded_segment_deleted", path=info.path, rows=info.rows)
        crash_point(CrashPoint.MID_DELETE)
    return len(chain.superseded)


def resolve_overlaps(catalog: Catalog, key: ChainKey) -> None:
    """Give what reaches over the end of a chain, from a segment that begins within it, a segment of its own.

    Such a segment comes from an archiver that slept while others published and merged the same facts.

    Args:
        catalog: refreshed; it is refreshed again after a change.
        key: the chain.

    Raises:
        ChainBroken: the segment holds other facts than the chain.
        SegmentError: a segment can't be read.
        StoreError: the store can't be used.
    """
    while overlap := _overlap_at_end(catalog.view.chain(key)):
        chain = catalog.view.chain(key)
        try:
            check_agreement(catalog.store, chain, overlap)
            _publish_rest(catalog.store, overlap, chain.end_offset)
            catalog.store.delete(overlap.path)
        except (Changed, NotFound):
            _log.info("overlap_gone", path=overlap.path)
        else:
            _log.warning("overlap_resolved", path=overlap.path, from_offset=chain.end_offset)
        catalog.refresh(key)


def check_agreement(store: Store, chain: Chain, info: SegmentInfo) -> None:
    """See that a chain's segments hold the facts of another segment, where they cover its offsets.

    Raises:
        ChainBroken: they hold others.
        SegmentError, StoreError: as `delete_superseded`.
    """
    for one in chain.segments:
        # What one of the two could not have any more the other may hold.
        first = max(one.first_offset, info.first_offset)
        end = min(one.end_offset, info.end_offset)
        if first < end and _rows(store, info, first, end) != _rows(store, one, first, end):
            raise ChainBroken(
                f"{chain.key}: {info.path} and {one.path} hold other facts for the offsets {first} to {end}; find out "
                f"which is right, such as by `litehit verify` on a copy without one of them, and remove the other"
            )


def _overlap_at_end(chain: Chain) -> SegmentInfo | None:
    return next((one.segment for one in chain.overlaps if one.segment.end_offset > chain.end_offset), None)


def _rows(store: Store, info: SegmentInfo, first: int, end: int) -> pa.Table:
    with open_segment(store, info.path) as (found, source), damage(info.path):
        if found != info:
            raise Changed(info.path)
        offset = ds.field("fact_offset")
        fragment = ds.ParquetFileFormat(page_checksum_verification=True).make_fragment(source)
        return fragment.to_table(filter=(offset >= first) & (offset < end), use_threads=False)


def _publish_rest(store: Store, info: SegmentInfo, end: int) -> None:
    rest = _rows(store, info, end, info.end_offset)
    if not rest.num_rows:  # nothing but markers
        return
    gap_end = info.gap_end if info.gap_end is not None and info.gap_end > end else None
    own = describe(info.chain, end, info.end_offset, rest, gap_end)
    try:
        store.create(own.path, encode(own, rest))
    except AlreadyExists:  # another archiver was quicker
        return
