"""What is found is read as it stands; a segment's file must be, to the byte, what its facts give."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from schemas.dead_letter import SOURCE_HEADER
from service.archive.catalog import Catalog
from service.archive.errors import SegmentError
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, describe
from service.archive.segment_writer import encode
from service.archive.store import Store
from service.errors import Difference
from service.records import SourceRecord
from service.verify.found import GAP, Found, FoundOrGap, of_segments, of_topic
from tests.archive_facts import made_fact, made_facts

COUNT = 30
CHAIN = ChainKey("facts", "generation", 0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def publish(store: Store) -> SegmentInfo:
    table = made_facts(COUNT).table
    info = describe(CHAIN, 0, COUNT, table)
    store.create(info.path, encode(info, table))
    return info


def read(store: Store) -> Iterator[FoundOrGap]:
    catalog = Catalog(store)
    catalog.refresh()
    chain = catalog.view.chain(CHAIN)
    for error in chain.damaged:
        raise error
    return of_segments(catalog, chain)


def test_rows_are_facts_and_behind_them_lies_a_gap(store: Store) -> None:
    publish(store)
    *rows, last = read(store)
    assert last is GAP
    for offset, row in enumerate(rows):
        assert isinstance(row, Found)
        fact = made_fact(offset)
        assert (row.offset, row.source_offset, row.headers) == (offset, 2 * offset, None)
        assert (row.key, row.value) == (fact.instance_id.encode(), fact.to_json())
    assert len(rows) == COUNT


@pytest.mark.parametrize("bit", [0x01, 0x10, 0x80])
def test_a_flipped_byte_of_a_segment_is_found_wherever_it_is(store: Store, tmp_path: Path, bit: int) -> None:
    info = publish(store)
    path = tmp_path / info.path
    data = path.read_bytes()
    rows = list(read(store))
    # Held against something else: where a segment ends, against the others and the topic. A file that says that another
    # version made it can't be held to the byte.
    end = data.index(str(COUNT).encode(), data.index(b"litehit.end_offset"))
    version = data.index(pa.__version__.encode())
    spared = {*range(end, end + len(str(COUNT))), *range(version, version + len(pa.__version__))}
    for place in range(bit % 23, len(data), 23):
        if place in spared:
            continue
        damaged = bytearray(data)
        damaged[place] ^= bit
        path.write_bytes(damaged)
        with suppress(SegmentError, Difference):
            assert list(read(store)) != rows, place  # a file that is whole tells other facts


def test_a_file_of_another_version_is_held_to_its_facts(store: Store, tmp_path: Path) -> None:
    info = publish(store)
    path = tmp_path / info.path
    mine = b"version " + pa.__version__.encode()
    data = path.read_bytes()
    assert data.count(mine) == 1
    path.write_bytes(data.replace(mine, re.sub(rb"\d", b"9", mine)))
    assert len(list(read(store))) == COUNT + 1


@pytest.mark.parametrize(
    "source", [None, b"", b"requests/1/7", b"other/0/7", b"requests/0/", b"requests/0/-7", b"requests/0/x"]
)
def test_a_record_without_its_request_is_found(source: bytes | None) -> None:
    record = SourceRecord("facts", 0, 3, b"k", b"v", 1, ((SOURCE_HEADER, source),))
    with pytest.raises(Difference, match=f"facts/0/3: the header {SOURCE_HEADER} is"):
        list(of_topic([record], 0, "requests/0"))


def test_an_accepted_gap_is_a_gap_where_it_stands(store: Store) -> None:
    first = publish(store)
    table = made_facts(2, COUNT + 5).table
    behind = describe(first.chain, first.end_offset, COUNT + 7, table, gap_end=COUNT + 5)
    store.create(behind.path, encode(behind, table))
    items = list(read(store))
    assert [place for place, item in enumerate(items) if item is GAP] == [COUNT, COUNT + 3]


def test_a_log_that_does_not_begin_at_0_begins_with_a_gap() -> None:
    record = SourceRecord("facts", 0, 3, b"k", b"v", 1, ((SOURCE_HEADER, b"requests/0/7"),))
    found = Found("facts/0/3", 3, 7, b"k", b"v", record.headers)
    assert list(of_topic([record], 0, "requests/0")) == [found]
    assert list(of_topic([record], 3, "requests/0")) == [GAP, found]
