"""Removing the oldest facts of a chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.catalog import Catalog
from service.archive.merge_rule import runs, spanning
from service.archive.segment import ChainKey, SegmentInfo
from service.archive.segment_writer import encode
from service.crash_points import CrashPoint, crash_point


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed from a chain.

    Attributes:
        segments: files.
        facts: in them.
    """

    segments: int = 0
    facts: int = 0


def remove_older(catalog: Catalog, key: ChainKey, before_ns: int) -> Removed:
    """Remove the facts of a chain's first segments, of those all of whose facts came into the store before a time.

    What counts is when they came, not the time that the facts themselves say: an old trace that is replayed today would
    be gone at once, and one fact that says it is of next year would keep all behind it.

    The numbered steps are those of a removal in docs/GUARANTEES.md.

    Args:
        catalog: refreshed; it is refreshed again after a change.
        key: the chain.
        before_ns: the time, nanoseconds since 1970.

    Raises:
        Changed: another process removes or merges too; nothing is lost, refresh and try again.
        StoreError: the store can't be used.
    """
    segments = catalog.view.chain(key).segments
    old = list(takewhile(lambda info: catalog.archived_ns(info) < before_ns, segments))
    for info in old:
        _replace(catalog, replace(info, rows=0, gap_end=None, archived_ns=None, expired_rows=info.rows))  # 1.
        crash_point(CrashPoint.MID_EXPIRE)
    if old:
        catalog.refresh(key)
    for run in runs(catalog.view.chain(key).expired):
        if len(run) > 1:
            _replace(catalog, spanning(run, expired_rows=sum(info.expired_rows or 0 for info in run)))  # 2.
            crash_point(CrashPoint.AFTER_MERGE)
            for info in run[1:]:
                catalog.store.delete(info.path)  # 3.
                crash_point(CrashPoint.MID_DELETE)
            catalog.refresh(key)
    return Removed(len(old), sum(info.rows for info in old))


def _replace(catalog: Catalog, info: SegmentInfo) -> None:
    file = catalog.file(info.path)
    assert file is not None, info.path
    catalog.store.replace(info.path, encode(info, FACT_SCHEMA.empty_table()), file.version)
