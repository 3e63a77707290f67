from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.catalog import Catalog
from service.archive.errors import ChainBroken, StoreError
from service.archive.object_store import ObjectStore
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, describe
from service.archive.segment_writer import encode
from service.archive.store import Store, StoredFile
from tests.archive_facts import START_NS, made_facts

OLD, NEW = ChainKey("facts", "z-old", 0), ChainKey("facts", "a-new", 0)


def put(store: Store, chain: ChainKey, base: int, rows: int) -> SegmentInfo:
    table = made_facts(rows, base).table
    info = describe(chain, base, base + rows, table)
    store.create(info.path, encode(info, table))
    return info


class CountingStore(ObjectStore):
    def __init__(self) -> None:
        super().__init__("memory://")
        self.opened: list[str] = []

    def open(self, path: str) -> Any:
        self.opened.append(path)
        return super().open(path)


def refreshed(catalog: Catalog, chain: ChainKey | None = None) -> tuple[SegmentInfo, ...]:
    """The segments that count after another look."""
    catalog.refresh(chain)
    return catalog.view.segments


def test_a_refresh_sees_what_is_new_and_reads_nothing_twice() -> None:
    store = CountingStore()
    catalog = Catalog(store)
    assert refreshed(catalog) == ()
    first, second = put(store, OLD, 0, 3), put(store, OLD, 3, 2)
    assert refreshed(catalog) == (first, second)
    third = put(store, OLD, 5, 1)
    assert refreshed(catalog) == (first, second, third)
    assert refreshed(catalog) == (first, second, third)
    assert store.opened == [first.path, second.path, third.path]
    assert catalog.next_offset(OLD) == 6
    assert catalog.next_offset(NEW) == 0
    assert catalog.view.faults == ()


def test_a_view_does_not_change_under_its_reader() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    view = catalog.view
    put(store, OLD, 0, 3)
    catalog.refresh()
    assert view.segments == ()
    assert len(catalog.view.segments) == 1


def test_a_removed_segment_leaves_a_hole() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    first, middle, last = put(store, OLD, 0, 3), put(store, OLD, 3, 2), put(store, OLD, 5, 1)
    catalog.refresh()
    store.delete(middle.path)
    assert refreshed(catalog) == (first, last)
    assert catalog.view.faults == ("facts/z-old/0: no segment covers offsets 3 to 5",)
    assert catalog.next_offset(OLD) == 6


def test_a_replaced_segment_is_removed_and_added() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    small = put(store, OLD, 0, 3)
    catalog.refresh()
    store.delete(small.path)
    large = put(store, OLD, 0, 5)
    assert refreshed(catalog) == (large,)
    assert catalog.next_offset(OLD) == 5


def merge(store: Store, chain: ChainKey, base: int, rows: int) -> SegmentInfo:
    """Put a segment in the place of the one that has its base."""
    table = made_facts(rows, base).table
    info = describe(chain, base, base + rows, table, archived_ns=1)
    (listed,) = [file for file in store.list() if file.path == info.path]
    store.replace(info.path, encode(info, table), listed.version)
    return info


def test_merged_segments_turn_into_one_in_one_step() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    parts = put(store, OLD, 0, 3), put(store, OLD, 3, 2)
    last = put(store, OLD, 5, 4)
    catalog.refresh()
    whole = merge(store, OLD, 0, 5)
    assert refreshed(catalog) == (whole, last)
    store.delete(parts[1].path)
    assert refreshed(catalog) == (whole, last)
    assert catalog.view.faults == ()


class SlowListing(ObjectStore):
    """While it lists, what the test says happens: behind the names before `at`, before the others."""

    def __init__(self) -> None:
        super().__init__("memory://")
        self.meanwhile: Callable[[], None] | None = None
        self.listed = 0

    def list(self, prefix: str = "") -> list[StoredFile]:
        self.listed += 1
        first, *_ = super().list(prefix)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return [first, *super().list(prefix)[1:]]


def test_a_listing_that_saw_neither_the_parts_nor_the_whole_is_done_again() -> None:
    store = SlowListing()
    catalog = Catalog(store)
    parts = put(store, OLD, 0, 3), put(store, OLD, 3, 2)
    last = put(store, OLD, 5, 4)
    catalog.refresh()

    def merge_all() -> None:
        merge(store, OLD, 0, 5)
        store.delete(parts[1].path)

    store.meanwhile = merge_all
    assert [info.rows for info in refreshed(catalog)] == [5, last.rows]
    assert catalog.view.faults == ()


def test_a_fault_that_stays_is_listed_twice_once() -> None:
    store = SlowListing()
    put(store, OLD, 3, 2)
    catalog = Catalog(store)
    for looks in (2, 3, 4):
        catalog.refresh()
        assert len(catalog.view.faults) == 1
        assert store.listed == looks


def test_one_chain_is_refreshed_alone() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    first, one = put(store, OLD, 0, 3), put(store, NEW, 0, 3)
    catalog.refresh()
    second, other = put(store, OLD, 3, 2), put(store, NEW, 3, 2)
    assert refreshed(catalog, OLD) == (one, first, second)
    assert catalog.next_offset(NEW) == 3
    store.delete(first.path)
    assert refreshed(catalog, NEW) == (one, other, first, second)
    assert refreshed(catalog, OLD) == (one, other, second)


def test_facts_that_expired_leave_the_chain_and_no_hole() -> None:
    store = open_store("memory://")
    catalog = Catalog(store)
    old, new = put(store, OLD, 0, 3), put(store, OLD, 3, 2)
    catalog.refresh()
    expired = replace(old, rows=0, expired_rows=3)
    store.replace(old.path, encode(expired, FACT_SCHEMA.empty_table()), store.list()[0].version)
    assert refreshed(catalog) == (new,)
    assert catalog.view.chain(OLD).expired == (expired,)
    assert catalog.view.generations == (("facts", "z-old"),)
    assert catalog.view.faults == ()


def test_a_damaged_segment_is_reported_and_read_again_once_restored() -> None:
    store = CountingStore()
    info = put(store, OLD, 0, 3)
    whole = store.read(info.path)
    store.delete(info.path)
    store.create(info.path, whole[:100])
    catalog = Catalog(store)
    for _ in range(2):
        assert refreshed(catalog) == ()
        (damaged,) = catalog.view.chain(OLD).damaged
        assert damaged.path == info.path
    assert store.opened == [info.path]
    with pytest.raises(ChainBroken):
        catalog.next_offset(OLD)
    store.delete(info.path)
    store.create(info.path, whole)
    assert refreshed(catalog) == (info,)
    assert catalog.next_offset(OLD) == 3


def test_generations_come_in_order_of_their_first_facts_and_partitions_in_theirs() -> None:
    store = open_store("memory://")
    newer = put(store, NEW, 10, 3)
    other_partition = put(store, ChainKey("facts", "z-old", 11), 0, 1)
    older = [put(store, OLD, 0, 2), put(store, OLD, 2, 2)]
    catalog = Catalog(store)
    catalog.refresh()
    assert catalog.view.generations == (("facts", "z-old"), ("facts", "a-new"))
    assert catalog.view.segments == (*older, other_partition, newer)
    assert older[0].first_time_ns == START_NS


def test_only_the_asked_topic_counts_and_only_segments() -> None:
    store = open_store("memory://")
    mine = put(store, OLD, 0, 2)
    put(store, ChainKey("facts-2", "g", 0), 0, 2)
    store.create("facts/facts/readme.txt", b"not a segment")
    catalog = Catalog(store, "facts")
    assert refreshed(catalog) == (mine,)


def test_a_store_that_fails_leaves_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory://")
    put(store, OLD, 0, 2)
    catalog = Catalog(store)
    catalog.refresh()

    def fail(prefix: str = "") -> list[Any]:
        raise StoreError("away")

    monkeypatch.setattr(store, "list", fail)
    with pytest.raises(StoreError):
        catalog.refresh()
    assert catalog.next_offset(OLD) == 2
