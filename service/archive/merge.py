"""Merging consecutive segments into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import pyarrow as pa
import pyarrow.parquet as pq

from service.archive.catalog import Catalog
from service.archive.errors import Changed, SegmentError
from service.archive.merge_rule import Parts, spanning
from service.archive.segment import SegmentInfo, damage, inspect
from service.archive.segment_writer import ROW_GROUP_ROWS, encode, row_groups
from service.archive.store import Data
from service.crash_points import CrashPoint, crash_point


def merge(catalog: Catalog, parts: Parts) -> SegmentInfo:
    """Put one segment in the place of several.

    The numbered steps are those of a merge in docs/GUARANTEES.md. Memory: the parts and the result as files, and a row
    group of facts.

    Args:
        catalog: shows the parts.
        parts: at least two, each of which begins where the one before ends, the first alone with a gap.

    Returns:
        The new one.

    Raises:
        SegmentError: a part is damaged, or the result would not be what it must be; nothing is replaced then.
        Changed, NotFound: a part or the result is not what it was: another process merges too, and nothing is lost.
        StoreError: the store can't be used.
    """
    store = catalog.store
    whole = merged(catalog, parts)
    files = [store.read(part.path) for part in parts]  # 1.
    for part, file in zip(parts, files, strict=True):
        if _info(part.path, file) != part:
            raise Changed(part.path)
    data = encode(whole, _tables(parts, files))
    _check(whole, data, _tables(parts, files))  # 2.
    first = catalog.file(whole.path)
    assert first is not None, whole.path
    store.replace(whole.path, data, first.version)  # 3.
    crash_point(CrashPoint.AFTER_MERGE)
    if store.read(whole.path) != data:  # 4.
        raise Changed(whole.path)
    for part in parts[1:]:
        store.delete(part.path)  # 5.
        crash_point(CrashPoint.MID_DELETE)
    return whole


def merged(catalog: Catalog, parts: Parts) -> SegmentInfo:
    """What the segment is that these become."""
    return spanning(parts, rows=sum(part.rows for part in parts), archived_ns=max(map(catalog.archived_ns, parts)))


def _check(whole: SegmentInfo, data: Data, parts: Iterable[pa.Table]) -> None:
    """See that a file says what it must and has the parts' rows, in their order."""
    both = zip_longest(row_groups(parts), row_groups(_tables((whole,), [data])))
    if _info(whole.path, data) != whole or any(mine != theirs for mine, theirs in both):
        raise SegmentError(whole.path, "merged, it would differ from the segments it is made of; nothing is replaced")


def _info(path: str, data: Data) -> SegmentInfo:
    return inspect(path, pa.BufferReader(data))


def _tables(parts: Parts, files: Sequence[Data]) -> Iterator[pa.Table]:
    """The facts of segments, some at a time."""
    for part, file in zip(parts, files, strict=True):
        with damage(part.path):
            source = pq.ParquetFile(pa.BufferReader(file), page_checksum_verification=True)
            for batch in source.iter_batches(ROW_GROUP_ROWS, use_threads=False):
                yield pa.Table.from_batches([batch])
