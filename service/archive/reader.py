"""Reading archived facts back: those of a segment, of one Parquet file, or of a whole store, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from litehit.facts import FactBatch
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog, CatalogView
from service.archive.chain import Chain
from service.archive.chain_walk import ChainWalk
from service.archive.errors import Changed, NotFound
from service.archive.open_store import open_store
from service.archive.segment import SegmentInfo, damage, inspect, open_segment
from service.archive.store import Store

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which facts to read. Row groups that can't hold any are not read at all.

    Attributes:
        from_ns, to_ns: times `from_ns <= t < to_ns`, nanoseconds; None = open.
        instance_ids: of these instances; None = of all.
        from_offset, to_offset: offsets `from_offset <= o < to_offset` of the facts topic; None = open.
    """

    from_ns: int | None = None
    to_ns: int | None = None
    instance_ids: Collection[str] | None = None
    from_offset: int | None = None
    to_offset: int | None = None

    def may_match(self, info: SegmentInfo) -> bool:
        """Whether a segment's times touch the window."""
        starts_before = self.to_ns is None or info.first_time_ns < self.to_ns
        ends_after = self.from_ns is None or info.last_time_ns >= self.from_ns
        return starts_before and ends_after

    def of_batch(self, facts: FactBatch) -> FactBatch:
        """Those of some facts that are wanted; offsets, which facts of a CSV do not have, are left aside."""
        wanted = np.ones(len(facts), np.bool_)
        if self.from_ns is not None:
            wanted &= facts.timestamps_ns >= self.from_ns
        if self.to_ns is not None:
            wanted &= facts.timestamps_ns < self.to_ns
        if self.instance_ids is not None:
            wanted &= np.array([one in self.instance_ids for one in facts.instance_ids], np.bool_)
        return facts if wanted.all() else facts.select(np.flatnonzero(wanted))

    def expression(self) -> ds.Expression:
        """As pyarrow takes it."""
        wanted = ds.scalar(True)
        if self.from_ns is not None:
            wanted &= ds.field("timestamp_ns") >= ds.scalar(self.from_ns)
        if self.to_ns is not None:
            wanted &= ds.field("timestamp_ns") < ds.scalar(self.to_ns)
        if self.instance_ids is not None:
            wanted &= ds.field("instance_id").isin(pa.array(sorted(self.instance_ids), pa.string()))
        if self.from_offset is not None:
            wanted &= ds.field("fact_offset") >= ds.scalar(self.from_offset)
        if self.to_offset is not None:
            wanted &= ds.field("fact_offset") < ds.scalar(self.to_offset)
        return wanted


EVERYTHING = FactFilter()


def read_segment(store: Store, info: SegmentInfo, wanted: FactFilter = EVERYTHING) -> Iterator[ArchivedFacts]:
    """The facts of a segment in offset order, in batches of at most `BATCH_ROWS`; batches are not empty.

    Raises:
        SegmentError: the file is damaged.
        NotFound: it is gone: it was merged into another.
        Changed: others were merged into it, or its facts expired; what was read before this is right.
    """
    if wanted.may_match(info):
        with open_segment(store, info.path) as (found, source):
            if found != info:
                raise Changed(info.path)
            yield from _batches(info.path, source, wanted)


def read_file(path: Path, wanted: FactFilter = EVERYTHING) -> Iterator[ArchivedFacts]:
    """The facts of one segment file, wherever it lies and whatever it is called. Errors are those of `read_segment`."""
    name = str(path)
    with damage(name):
        source = pa.OSFile(name)
    with source:
        if wanted.may_match(inspect(name, source)):
            yield from _batches(name, source, wanted)


class ArchiveReader:
    """The facts of a store at one moment: by generation in order of appearance, then partition, then offset.

    Segments may be merged meanwhile: where one is gone or another, reading goes on in what it was merged into.

    Args:
        url: of the store, which is only read.

    Raises:
        StoreError: it can't be read.

    Attributes:
        view: its segments and what is wrong with them.
    """

    def __init__(self, url: str) -> None:
        self._catalog = Catalog(open_store(url, for_writing=False))
        self._catalog.refresh()
        self.view: CatalogView = self._catalog.view

    def batches(self, wanted: FactFilter = EVERYTHING) -> Iterator[ArchivedFacts]:
        """The facts, as `read_segment` gives them.

        Raises:
            SegmentError: a file is damaged; nothing is left out silently.
            FactsExpired: facts were removed by retention before they were read.
        """
        for chain in self.view.chains.values():
            for error in chain.damaged:
                raise error
        for key in dict.fromkeys(info.chain for info in self.view.segments):
            yield from read_chain(self._catalog, self.view.chain(key), wanted)


def read_chain(catalog: Catalog, chain: Chain, wanted: FactFilter = EVERYTHING) -> Iterator[ArchivedFacts]:
    """The facts of a chain as it was at one moment, whatever is merged meanwhile. Errors are those of `batches` above.

    Args:
        catalog: of the store; is refreshed where a segment is not what it was.
        chain: as a view showed it.
        wanted: which facts.
    """
    walk = ChainWalk(catalog, chain)
    walk.passed(wanted.from_offset or 0)
    while (info := walk.segment) is not None:
        begin, end = walk.part
        end = end if wanted.to_offset is None else min(end, wanted.to_offset)
        if begin >= end:
            return
        part = replace(
            wanted,
            from_offset=begin if begin > info.base_offset else None,
            to_offset=end if end < info.end_offset else None,
        )
        try:
            for facts in read_segment(catalog.store, info, part):
                walk.passed(int(facts.fact_offsets[-1]) + 1)
                yield facts
        except (Changed, NotFound) as error:
            walk.look_again(error)
        else:
            walk.passed(info.end_offset)


def _batches(path: str, source: pa.NativeFile, wanted: FactFilter) -> Iterator[ArchivedFacts]:
    with damage(path):
        fragment = ds.ParquetFileFormat(page_checksum_verification=True).make_fragment(source)
        for batch in fragment.to_batches(filter=wanted.expression(), batch_size=BATCH_ROWS, use_threads=False):
            if batch.num_rows:
                yield ArchivedFacts.from_table(pa.Table.from_batches([batch]))
