from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from litehit.projector import HitCurveProjector
from service.archive.archived_facts import FACT_SCHEMA, ArchivedFacts
from service.archive.errors import SegmentError
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, describe, parse_path, read_info, read_table, segment_path
from service.archive.segment_writer import encode
from service.archive.store import Store
from tests.archive_facts import made_facts
from tests.facts_strategies import archived_facts

CHAIN = ChainKey("litehit.facts", "Gen-1_x", 3)


def put(store: Store, facts: ArchivedFacts, chain: ChainKey = CHAIN) -> SegmentInfo:
    table = facts.table
    info = describe(chain, int(facts.fact_offsets[0]), int(facts.fact_offsets[-1]) + 1, table)
    store.create(info.path, encode(info, table))
    return info


@given(archived_facts())
def test_facts_come_back_from_a_segment(facts: ArchivedFacts) -> None:
    store = open_store("memory://")
    info = put(store, facts)
    assert read_info(store, info.path) == info
    assert info.first_time_ns == facts.facts.timestamps_ns.min()
    assert info.last_time_ns == facts.facts.timestamps_ns.max()
    found, table = read_table(store, info.path)
    back = ArchivedFacts.from_table(table)
    assert found == info
    assert list(back.facts) == list(facts.facts)
    assert np.array_equal(back.fact_offsets, facts.fact_offsets)
    assert np.array_equal(back.source_offsets, facts.source_offsets)


@given(archived_facts(min_size=2))
def test_a_slice_of_a_table_is_the_slice_of_its_facts(facts: ArchivedFacts) -> None:
    part = ArchivedFacts.from_table(facts.table.slice(1))
    assert list(part.facts) == list(facts.facts)[1:]
    assert part.facts.hit_curves.offsets[0] == 0


def test_the_name_and_the_metadata_are_as_published() -> None:
    store = open_store("memory://")
    info = put(store, made_facts(5, first_offset=40))
    assert info.path == "facts/litehit.facts/Gen-1_x/00003/00000000000000000040.parquet"
    file = pq.ParquetFile(store.open(info.path))
    assert {key: value for key, value in file.metadata.metadata.items() if key.startswith(b"litehit.")} == {
        b"litehit.format_version": b"1",
        b"litehit.topic": b"litehit.facts",
        b"litehit.generation": b"Gen-1_x",
        b"litehit.partition": b"3",
        b"litehit.base_offset": b"40",
        b"litehit.end_offset": b"45",
        b"litehit.rows": b"5",
        b"litehit.first_time_ns": str(info.first_time_ns).encode(),
        b"litehit.last_time_ns": str(info.last_time_ns).encode(),
    }
    assert file.schema_arrow.equals(FACT_SCHEMA)
    assert {file.metadata.row_group(0).column(i).compression for i in range(file.metadata.num_columns)} == {"ZSTD"}


@pytest.mark.parametrize(
    "path",
    [
        "facts/t/g/00003/00000000000000000040.csv",
        "facts/t/g/3/00000000000000000040.parquet",
        "facts/t/00003/00000000000000000040.parquet",
        "facts/t/g/00003/40.parquet",
        "snapshots/t/g/00003/00000000000000000040.parquet",
    ],
)
def test_other_files_are_no_segments(path: str) -> None:
    assert parse_path(path) is None


def test_a_path_and_its_parts_are_one() -> None:
    assert parse_path(segment_path(CHAIN, 2**40)) == (CHAIN, 2**40)


def test_duckdb_sums_a_segment_as_the_projector_does(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("store")
    facts = made_facts(2000)
    info = put(open_store(str(root)), facts)
    for capacity in (0, 1, 100, 5000, 10**9):
        (found,) = duckdb.execute(f"""
            select count(*), sum(input_token_len), sum(coalesce(list_sum([
                case when s.start_required_blocks > {capacity} then 0
                     else least(s.run_length, {capacity} - s.start_required_blocks + 1) end
                for s in hit_curve]), 0))
            from '{root}/{info.path}'""").fetchall()
        hits = HitCurveProjector.project_blocks_batch(facts.facts.hit_curves, capacity)
        assert found == (2000, facts.facts.input_token_lens.sum(), hits.sum())


def broken(facts: ArchivedFacts, **metadata: str) -> bytes:
    """A segment whose metadata says something else."""
    info = describe(CHAIN, 0, len(facts), facts.table)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, FACT_SCHEMA, store_schema=False) as writer:
        writer.write_table(facts.table)
        writer.add_key_value_metadata(info.metadata() | {f"litehit.{key}": value for key, value in metadata.items()})
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format_version": "2"}, "format version 2, but this program reads 1"),
        ({"format_version": "x"}, "format_version is 'x', not an integer"),
        ({"generation": "other"}, "renamed"),
        ({"partition": "4"}, "renamed"),
        ({"base_offset": "1", "end_offset": "20"}, "renamed"),
        ({"rows": "9"}, "10 rows, but its metadata says 9"),
        ({"end_offset": "9"}, "10 rows, .* in offsets 0 to 9"),
        ({"gap_end": "1"}, "10 rows, .* in offsets 1 to 10"),
        ({"gap_end": "0"}, "its gap ends at offset 0, which is not behind its base"),
        ({"gap_end": "x"}, "gap_end is 'x', not an integer"),
        ({"expired_rows": "3"}, "10 rows, but its metadata says 10 and 3 removed"),
        ({"rows": "0", "expired_rows": "10"}, "10 rows, but its metadata says 0 and 10 removed"),
    ],
)
def test_a_contradiction_is_named(metadata: dict[str, str], message: str) -> None:
    store = open_store("memory://")
    path = segment_path(CHAIN, 0)
    store.create(path, broken(made_facts(10), **metadata))
    with pytest.raises(SegmentError, match=message) as refused:
        read_info(store, path)
    assert refused.value.path == path


def test_other_parquet_files_and_other_columns_are_refused() -> None:
    store = open_store("memory://")
    path = segment_path(CHAIN, 0)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    store.create(path, sink.getvalue().to_pybytes())
    with pytest.raises(SegmentError, match="no segment of facts"):
        read_info(store, path)

    other = replace(CHAIN, partition=4)
    table = made_facts(3).table
    info = describe(other, 0, 3, table)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.drop_columns(["source_offset"]).schema) as writer:
        writer.write_table(table.drop_columns(["source_offset"]))
        writer.add_key_value_metadata(info.metadata())
    store.create(info.path, sink.getvalue().to_pybytes())
    with pytest.raises(SegmentError, match="columns are not those of facts"):
        read_info(store, info.path)


def test_a_damaged_file_is_named() -> None:
    whole = bytearray(broken(made_facts(10)))
    for damaged in (b"", b"PAR1", whole[:-20], whole[:-4] + b"XXXX"):
        store = open_store("memory://")
        path = segment_path(CHAIN, 0)
        store.create(path, bytes(damaged))
        with pytest.raises(SegmentError, match=r"^facts/litehit.facts/Gen-1_x/00003/0+\.parquet: damaged"):
            read_info(store, path)
    whole[20:200] = bytes(180)
    store = open_store("memory://")
    store.create(path, bytes(whole))
    with pytest.raises(SegmentError, match="damaged"):
        read_table(store, path)


def test_a_gap_is_in_the_metadata_and_read_back() -> None:
    store = open_store("memory://")
    table = made_facts(5, first_offset=47).table
    info = describe(CHAIN, 40, 52, table, gap_end=47)
    store.create(info.path, encode(info, table))
    assert read_info(store, info.path) == info
    assert info.path.endswith("/00000000000000000040.parquet")
    assert info.first_offset == 47
    metadata = pq.ParquetFile(store.open(info.path)).metadata.metadata
    assert metadata[b"litehit.gap_end"] == b"47"


def test_a_segment_whose_facts_were_removed_says_how_many_and_has_no_rows() -> None:
    store = open_store("memory://")
    info = SegmentInfo(CHAIN, 40, 60, 0, 5, 9, expired_rows=17)
    store.create(info.path, encode(info, FACT_SCHEMA.empty_table()))
    assert read_table(store, info.path) == (info, FACT_SCHEMA.empty_table())


def test_a_merged_segment_says_when_its_facts_came() -> None:
    store = open_store("memory://")
    table = made_facts(5).table
    info = describe(CHAIN, 0, 5, table, archived_ns=7)
    store.create(info.path, encode(info, table))
    assert read_info(store, info.path).archived_ns == 7


def test_every_flipped_bit_of_the_data_is_noticed() -> None:
    """By the checksums of Parquet's pages: compressed numbers may decode to other numbers without any complaint."""
    facts = made_facts(200)
    whole = bytes(encode(describe(CHAIN, 0, 200, facts.table), facts.table))
    file = pq.ParquetFile(pa.BufferReader(whole))
    expected = read_back(whole)
    for column in range(file.metadata.num_columns):
        chunk = file.metadata.row_group(0).column(column)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        for place in range(start, start + chunk.total_compressed_size):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << (place % 8)
            try:
                found = read_back(bytes(flipped))
            except SegmentError:
                continue
            assert found.equals(expected), f"byte {place} of {chunk.path_in_schema}"


def read_back(data: bytes) -> pa.Table:
    store = open_store("memory://")
    path = segment_path(CHAIN, 0)
    store.create(path, data)
    return read_table(store, path)[1]
