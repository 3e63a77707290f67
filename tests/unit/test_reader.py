from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.archive import segment_writer
from service.archive.archived_facts import FACT_SCHEMA, ArchivedFacts
from service.archive.errors import Changed, FactsExpired, NotFound, SegmentError, StoreError
from service.archive.open_store import open_store
from service.archive.reader import ArchiveReader, FactFilter, read_file, read_segment
from service.archive.segment import ChainKey, SegmentInfo, describe, read_info, segment_path
from service.archive.segment_writer import encode
from service.archive.store import Store
from tests.archive_facts import SECOND_NS, START_NS, made_facts

CHAIN = ChainKey("facts", "g", 0)
TIMES = st.none() | st.integers(START_NS - SECOND_NS, START_NS + 25 * SECOND_NS)
INSTANCES = st.none() | st.sets(st.sampled_from(["model-0", "model-1", "model-2", "none"]))


def put(store: Store, chain: ChainKey, base: int, rows: int) -> SegmentInfo:
    table = made_facts(rows, base).table
    info = describe(chain, base, base + rows, table)
    store.create(info.path, encode(info, table))
    return info


def offsets(batches: Iterator[ArchivedFacts]) -> list[int]:
    return [offset for batch in batches for offset in batch.fact_offsets.tolist()]


@pytest.fixture(scope="module")
def many_groups() -> tuple[Store, SegmentInfo]:
    """A segment of 24 facts in row groups of 5."""
    store = open_store("memory://")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "ROW_GROUP_ROWS", 5)
        return store, put(store, CHAIN, 0, 24)


@given(TIMES, TIMES, INSTANCES)
def test_a_filter_reads_exactly_its_facts(
    many_groups: tuple[Store, SegmentInfo], from_ns: int | None, to_ns: int | None, instance_ids: set[str] | None
) -> None:
    facts = made_facts(24)
    times = facts.facts.timestamps_ns
    wanted = np.ones(24, np.bool_)
    if from_ns is not None:
        wanted &= times >= from_ns
    if to_ns is not None:
        wanted &= times < to_ns
    if instance_ids is not None:
        wanted &= np.isin(np.array(facts.facts.instance_ids), list(instance_ids))
    batches = list(read_segment(*many_groups, FactFilter(from_ns, to_ns, instance_ids)))
    assert all(len(batch) for batch in batches)
    assert offsets(iter(batches)) == np.flatnonzero(wanted).tolist()
    assert [fact for batch in batches for fact in batch.facts] == list(facts.facts.select(np.flatnonzero(wanted)))


def test_row_groups_outside_the_window_are_not_read(tmp_path: Path) -> None:
    """Damage in a row group shows only to those who read it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "ROW_GROUP_ROWS", 5)
        info = put(open_store(str(tmp_path)), CHAIN, 0, 24)
    path = tmp_path / info.path
    whole = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    start = column.data_page_offset
    whole[start : start + 60] = bytes(60)
    path.write_bytes(whole)
    store = open_store(str(tmp_path), for_writing=False)
    late = FactFilter(from_ns=START_NS + 5 * SECOND_NS)
    assert offsets(read_segment(store, info, late)) == list(range(5, 24))
    with pytest.raises(SegmentError, match="damaged"):
        list(read_segment(store, info))


def test_a_segment_outside_the_window_is_not_even_opened() -> None:
    gone = SegmentInfo(CHAIN, 0, 10, 10, START_NS, START_NS + 9)
    store = open_store("memory://")
    assert list(read_segment(store, gone, FactFilter(from_ns=START_NS + 10))) == []
    assert list(read_segment(store, gone, FactFilter(to_ns=START_NS))) == []
    with pytest.raises(NotFound):
        list(read_segment(store, gone, FactFilter(START_NS + 9, START_NS + 10)))


def test_a_replaced_segment_is_not_taken_for_the_old_one() -> None:
    store = open_store("memory://")
    old = put(store, CHAIN, 0, 3)
    store.delete(old.path)
    put(store, CHAIN, 0, 5)
    with pytest.raises(Changed, match="replaced"):
        list(read_segment(store, old))


def test_one_file_is_read_wherever_it_lies(tmp_path: Path) -> None:
    info = put(open_store(str(tmp_path / "store")), CHAIN, 7, 10)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes((tmp_path / "store" / info.path).read_bytes())
    assert offsets(read_file(copy)) == list(range(7, 17))
    assert offsets(read_file(copy, FactFilter(to_ns=START_NS + 9 * SECOND_NS))) == [7, 8]
    copy.write_bytes(b"PAR1")
    with pytest.raises(SegmentError, match=r"copy\.parquet: damaged"):
        list(read_file(copy))
    with pytest.raises(SegmentError, match=r"absent\.parquet"):
        list(read_file(tmp_path / "absent.parquet"))


def test_a_store_is_read_in_order_and_its_faults_are_known(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put(store, ChainKey("facts", "second", 0), 100, 5)
    put(store, ChainKey("facts", "first", 1), 0, 3)
    put(store, ChainKey("facts", "first", 0), 10, 2)
    put(store, ChainKey("facts", "first", 0), 0, 10)
    reader = ArchiveReader(str(tmp_path))
    assert offsets(reader.batches()) == [*range(12), *range(3), *range(100, 105)]
    assert offsets(reader.batches(FactFilter(from_ns=START_NS + 11 * SECOND_NS))) == [11, *range(100, 105)]
    assert reader.view.faults == ("facts/second/0: no segment covers offsets 0 to 100",)


def test_a_damaged_segment_is_not_left_out_silently(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put(store, CHAIN, 0, 3)
    store.create("facts/facts/g/00000/00000000000000000003.parquet", b"torn")
    with pytest.raises(SegmentError, match="00000000000000000003"):
        list(ArchiveReader(str(tmp_path)).batches())


def merge(store: Store, base: int, end: int) -> None:
    """Merge the segments between two offsets, as a compaction does."""
    parts = [file for file in store.list() if base <= int(Path(file.path).stem) < end]
    table = made_facts(end - base, base).table
    info = describe(CHAIN, base, end, table, archived_ns=1)
    store.replace(info.path, encode(info, table), parts[0].version)
    for part in parts[1:]:
        store.delete(part.path)


def expire(store: Store, base: int) -> None:
    (file,) = [file for file in store.list() if int(Path(file.path).stem) == base]
    info = replace(read_info(store, file.path), rows=0, expired_rows=5)
    store.replace(file.path, encode(info, FACT_SCHEMA.empty_table()), file.version)


@pytest.fixture
def chain_of_six(tmp_path: Path) -> Store:
    store = open_store(str(tmp_path))
    for base in range(0, 30, 5):
        put(store, CHAIN, base, 5)
    return store


@given(st.data())
def test_reading_goes_on_at_the_right_offset_however_segments_are_merged_meanwhile(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        bases = sorted({0, *data.draw(st.sets(st.integers(1, 29), max_size=8))})
        for base, end in pairwise([*bases, 30]):
            put(store, CHAIN, base, end - base)
        reader = ArchiveReader(folder)
        wanted = FactFilter(instance_ids={"model-0"}) if data.draw(st.booleans()) else FactFilter()
        read: list[int] = []
        for batch in reader.batches(wanted):
            read += batch.fact_offsets.tolist()
            if data.draw(st.booleans()):
                put(store, CHAIN, end, 3)  # what comes later is not read
                end += 3
            if data.draw(st.booleans()):
                now = [*(int(Path(file.path).stem) for file in store.list()), end]
                low, high = sorted(data.draw(st.sets(st.sampled_from(now), min_size=2, max_size=2)))
                merge(store, low, high)
        assert read == [offset for offset in range(30) if not wanted.instance_ids or offset % 3 == 0]


def test_facts_that_expire_before_they_are_read_are_told(chain_of_six: Store, tmp_path: Path) -> None:
    batches = ArchiveReader(str(tmp_path)).batches()
    next(batches)
    expire(chain_of_six, 0)
    next(batches)
    expire(chain_of_six, 5)
    expire(chain_of_six, 10)
    with pytest.raises(FactsExpired, match="the facts before offset 15 were removed by retention"):
        list(batches)
    assert offsets(ArchiveReader(str(tmp_path)).batches()) == list(range(15, 30))


def test_a_segment_that_vanishes_is_no_end(chain_of_six: Store, tmp_path: Path) -> None:
    batches = ArchiveReader(str(tmp_path)).batches()
    next(batches)
    chain_of_six.delete(segment_path(CHAIN, 10))
    with pytest.raises(NotFound, match="00000000000000000010"):
        list(batches)


def test_a_segment_that_is_damaged_meanwhile_is_told(chain_of_six: Store, tmp_path: Path) -> None:
    batches = ArchiveReader(str(tmp_path)).batches()
    next(batches)
    chain_of_six.delete(segment_path(CHAIN, 10))
    (tmp_path / segment_path(CHAIN, 15)).write_bytes(b"torn")
    with pytest.raises(SegmentError, match="00000000000000000015"):
        list(batches)


def test_an_absent_store_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such folder"):
        ArchiveReader(str(tmp_path / "absent"))
