from __future__ import annotations

from dataclasses import replace

import pytest

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.catalog import Catalog
from service.archive.covered import delete_superseded, resolve_overlaps
from service.archive.errors import ChainBroken, SegmentError
from service.archive.merge import merge
from service.archive.open_store import open_store
from service.archive.segment import SegmentInfo, describe, read_table
from service.archive.segment_writer import encode
from service.archive.store import Store
from tests.archive_facts import made_facts
from tests.chains import CHAIN, chain_of, names, offsets_of, put_all


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def catalog_of(store: Store) -> Catalog:
    catalog = Catalog(store)
    catalog.refresh()
    return catalog


def merge_and_die(store: Store, *infos: SegmentInfo) -> SegmentInfo:
    """A merge whose process died before it deleted anything."""
    parts = [(info.path, store.read(info.path)) for info in infos[1:]]
    whole = merge(catalog_of(store), infos)
    for path, data in parts:
        store.create(path, data)
    return whole


def alter(store: Store, info: SegmentInfo) -> None:
    """Other facts in the same offsets, in a file that is whole."""
    table = read_table(store, info.path)[1]
    table = table.set_column(3, table.schema.field(3), table["block_bytes"])
    (file,) = [file for file in store.list() if file.path == info.path]
    store.replace(info.path, encode(info, table), file.version)


def test_what_was_merged_and_not_deleted_is_deleted(store: Store) -> None:
    infos = put_all(store, [10, 20, 30, 40])
    before = offsets_of(store, infos)
    whole = merge_and_die(store, *infos[:3])
    assert chain_of(store).superseded == tuple(infos[1:3])
    assert delete_superseded(catalog_of(store), CHAIN) == 2
    assert names(store) == [0, 30]
    assert chain_of(store).segments == (whole, infos[3])
    assert offsets_of(store, chain_of(store).segments) == before
    assert delete_superseded(catalog_of(store), CHAIN) == 0


def test_nothing_is_deleted_for_a_segment_with_other_facts(store: Store) -> None:
    infos = put_all(store, [10, 20, 30])
    alter(store, merge_and_die(store, *infos[:2]))
    with pytest.raises(ChainBroken, match="hold other facts for the offsets 10 to 20"):
        delete_superseded(catalog_of(store), CHAIN)
    assert names(store) == [0, 10, 20]


def test_nothing_is_deleted_for_a_segment_that_cannot_be_read(store: Store) -> None:
    infos = put_all(store, [300, 600, 610])
    whole = merge_and_die(store, *infos[:2])
    catalog = catalog_of(store)
    data = store.read(whole.path)
    (file,) = [file for file in store.list() if file.path == whole.path]
    store.replace(whole.path, data[: len(data) // 2] + bytes(40) + data[len(data) // 2 + 40 :], file.version)
    with pytest.raises(SegmentError, match="damaged"):
        delete_superseded(catalog, CHAIN)
    assert names(store) == [0, 300, 600]


def test_what_expired_needs_no_facts_to_be_deleted_for(store: Store) -> None:
    infos = put_all(store, [10, 20, 30])
    (file,) = [file for file in store.list() if file.path == infos[0].path]
    expired = replace(infos[0], end_offset=20, rows=0, expired_rows=16)
    store.replace(infos[0].path, encode(expired, FACT_SCHEMA.empty_table()), file.version)
    assert delete_superseded(catalog_of(store), CHAIN) == 1
    assert names(store) == [0, 20]


def over_the_end(store: Store, base: int, end: int, markers: int = 2) -> SegmentInfo:
    """A segment that another archiver, which slept, publishes from a base within the chain."""
    table = made_facts(end - base, base).table
    info = describe(CHAIN, base, end + markers, table)
    store.create(info.path, encode(info, table))
    return info


def whole_facts(store: Store, *ends: int) -> list[SegmentInfo]:
    """Segments with a fact on every offset, the first two merged."""
    base = 0
    for end in ends:
        table = made_facts(end - base, base).table
        info = describe(CHAIN, base, end, table)
        store.create(info.path, encode(info, table))
        base = end
    merge(catalog_of(store), chain_of(store).segments[:2])
    return list(chain_of(store).segments)


def test_what_reaches_over_the_end_becomes_a_segment(store: Store) -> None:
    whole_facts(store, 10, 20)
    over_the_end(store, 10, 25)
    catalog = catalog_of(store)
    assert catalog.view.faults != ()
    resolve_overlaps(catalog, CHAIN)
    chain = catalog.view.chain(CHAIN)
    assert (chain.faults, chain.next_offset) == ((), 27)
    assert offsets_of(store, chain.segments) == list(range(25))
    assert names(store) == [0, 20]


def test_where_nothing_but_markers_reaches_over_the_end_they_are_read_again(store: Store) -> None:
    whole_facts(store, 10, 20)
    over_the_end(store, 10, 20)
    catalog = catalog_of(store)
    resolve_overlaps(catalog, CHAIN)
    assert catalog.next_offset(CHAIN) == 20
    assert names(store) == [0]


def test_what_reaches_over_the_end_and_differs_is_told(store: Store) -> None:
    whole_facts(store, 10, 20)
    alter(store, over_the_end(store, 10, 25))
    with pytest.raises(ChainBroken, match="hold other facts for the offsets 10 to 20"):
        resolve_overlaps(catalog_of(store), CHAIN)
    assert names(store) == [0, 10]


def test_what_the_chain_covers_by_now_is_no_overlap(store: Store) -> None:
    whole_facts(store, 10, 20, 30)
    over_the_end(store, 10, 25, markers=0)
    resolve_overlaps(catalog_of(store), CHAIN)
    assert [info.base_offset for info in chain_of(store).superseded] == [10]
    assert delete_superseded(catalog_of(store), CHAIN) == 1
    assert names(store) == [0, 20]
