from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.archive import merge as merging
from service.archive import segment_writer
from service.archive.catalog import Catalog
from service.archive.errors import Changed, NotFound, SegmentError, StoreError
from service.archive.merge import merge
from service.archive.open_store import open_store
from service.archive.segment import SegmentInfo, describe, read_table
from service.archive.segment_writer import encode
from service.archive.store import Data, Store
from tests.chains import CHAIN, chain_of, names, offsets_of, put_all


def catalog_of(store: Store) -> Catalog:
    catalog = Catalog(store)
    catalog.refresh()
    return catalog


@settings(max_examples=40)
@given(st.sets(st.integers(1, 60), min_size=3, max_size=12).map(sorted), st.booleans(), st.integers(1, 20), st.data())
def test_the_result_has_the_parts_rows_and_the_bytes_that_they_give(
    ends: list[int], gap: bool, group_rows: int, data: st.DataObject
) -> None:
    store = open_store("memory://")
    infos = put_all(store, ends, [0] if gap else [])
    low = data.draw(st.integers(0, len(infos) - 2))
    high = data.draw(st.integers(low + 2, len(infos)))
    before = offsets_of(store, infos)
    catalog = catalog_of(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "ROW_GROUP_ROWS", group_rows)
        patch.setattr(merging, "ROW_GROUP_ROWS", group_rows)
        whole = merge(catalog, tuple(infos[low:high]))
        found, table = read_table(store, whole.path)
        assert found == whole
        described = describe(CHAIN, whole.base_offset, whole.end_offset, table, whole.gap_end, whole.archived_ns)
        assert described == whole
        assert store.read(whole.path) == encode(whole, table)
    chain = chain_of(store)
    assert chain.segments == (*infos[:low], whole, *infos[high:])
    assert (chain.faults, chain.superseded) == ((), ())
    assert offsets_of(store, chain.segments) == before
    assert names(store) == [info.base_offset for info in chain.segments]


def test_it_is_as_old_as_its_newest_part() -> None:
    store = open_store("memory://")
    infos = put_all(store, [5, 10, 15])
    catalog = catalog_of(store)
    newest = max(map(catalog.archived_ns, infos))
    whole = merge(catalog, tuple(infos[:2]))
    assert catalog.archived_ns(infos[0]) <= catalog.archived_ns(infos[1]) == catalog.archived_ns(whole) <= newest
    assert whole.archived_ns is not None
    catalog.refresh()
    assert merge(catalog, (whole, infos[2])).archived_ns == newest == catalog.archived_ns(infos[2])


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_where_a_part_is_not_what_it_was_nothing_is_done(victim: int) -> None:
    store = open_store("memory://")
    infos = put_all(store, [5, 10, 15, 20])
    other, mine = catalog_of(store), catalog_of(store)
    merge(other, tuple(infos[victim : victim + 2]))
    left = store.list()
    with pytest.raises((Changed, NotFound)):
        merge(mine, tuple(infos[:3]))
    assert store.list() == left
    assert chain_of(store).faults == ()


def test_of_two_that_merge_the_same_one_does() -> None:
    store = open_store("memory://")
    infos = put_all(store, [5, 10, 15])
    real_read = store.read

    class Overtaken:
        """Another process is quicker, between the reading and the replacing."""

        done = False

        def replace(self, path: str, data: Data, version: str) -> None:
            if not self.done:
                self.done = True
                merge(catalog_of(store), tuple(infos[:2]))
            store.replace(path, data, version)

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

    with pytest.raises(Changed):
        merge(catalog_of(Overtaken()), tuple(infos[:2]))
    assert real_read(infos[0].path)
    assert [info.end_offset for info in chain_of(store).segments] == [10, 15]


def test_a_damaged_part_stays_and_is_named() -> None:
    store = open_store("memory://")
    infos = put_all(store, [300, 600])
    catalog = catalog_of(store)
    whole = store.read(infos[1].path)
    store.delete(infos[1].path)
    store.create(infos[1].path, whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    left = store.list()
    with pytest.raises(SegmentError, match=f"{infos[1].path}: damaged"):
        merge(catalog, tuple(infos))
    assert store.list() == left


def test_a_result_that_differs_replaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a fault of the Parquet library would make it."""
    store = open_store("memory://")
    infos = put_all(store, [5, 10])
    left = store.list()
    real_encode = encode

    def swap(info: SegmentInfo, tables: Any) -> memoryview:
        return real_encode(info, list(tables)[::-1])

    monkeypatch.setattr(merging, "encode", swap)
    with pytest.raises(SegmentError, match="would differ from the segments it is made of; nothing is replaced"):
        merge(catalog_of(store), tuple(infos))
    monkeypatch.setattr(
        merging, "encode", lambda info, tables: real_encode(replace(info, rows=1), next(iter(tables))[:1])
    )
    with pytest.raises(SegmentError, match="would differ"):
        merge(catalog_of(store), tuple(infos))
    assert store.list() == left


def test_no_part_is_deleted_before_the_store_shows_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://")
    infos = put_all(store, [5, 10])
    catalog = catalog_of(store)
    real_replace = store.replace
    monkeypatch.setattr(store, "replace", lambda path, data, version: real_replace(path, bytes(data)[:-1], version))
    with pytest.raises(Changed):
        merge(catalog, tuple(infos))
    assert names(store) == [0, 5]


def test_a_store_that_refuses_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://")
    infos = put_all(store, [5, 10])
    left = store.list()

    def refuse(*_: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(store, "replace", refuse)
    with pytest.raises(StoreError, match="away"):
        merge(catalog_of(store), tuple(infos))
    assert store.list() == left
