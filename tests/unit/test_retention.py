from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.catalog import Catalog
from service.archive.covered import delete_superseded
from service.archive.errors import Changed
from service.archive.merge import merge
from service.archive.object_store import ObjectStore
from service.archive.retention import Removed, remove_older
from service.archive.segment import read_table
from service.archive.segment_writer import encode
from service.archive.store import Data, Store, StoredFile
from tests.chains import CHAIN, chain_of, names, offsets_of, put, put_all


class DatedStore(ObjectStore):
    """Says of each file that it was written as many nanoseconds after 1970 as its base offset is."""

    def __init__(self) -> None:
        super().__init__("memory://")

    def list(self, prefix: str = "") -> list[StoredFile]:
        return [
            replace(file, modified_ns=int(file.path.rpartition("/")[2].partition(".")[0]))
            for file in super().list(prefix)
        ]


def remove(store: Store, before_ns: int) -> Removed:
    catalog = Catalog(store)
    catalog.refresh()
    return remove_older(catalog, CHAIN, before_ns)


def test_what_came_before_is_removed_and_how_much_it_was_is_kept() -> None:
    store = DatedStore()
    infos = put_all(store, [10, 20, 30, 40])
    assert remove(store, 20) == Removed(2, infos[0].rows + infos[1].rows)
    chain = chain_of(store)
    assert chain.segments == tuple(infos[2:])
    assert (chain.start_offset, chain.expired_facts) == (20, infos[0].rows + infos[1].rows)
    assert (chain.next_offset, chain.faults, chain.superseded) == (40, (), ())
    assert names(store) == [0, 20, 30], "one file stands for all that was removed"
    assert remove(store, 20) == Removed()
    assert remove(store, 21) == Removed(1, infos[2].rows)
    (expired,) = chain_of(store).expired
    assert (expired.base_offset, expired.end_offset) == (0, 30)
    assert expired.first_time_ns == infos[0].first_time_ns
    assert expired.last_time_ns == infos[2].last_time_ns
    assert read_table(store, expired.path)[1] == FACT_SCHEMA.empty_table()


def test_an_emptied_chain_goes_on_where_it_ended() -> None:
    store = DatedStore()
    infos = put_all(store, [10, 20])
    assert remove(store, 1000).segments == 2
    chain = chain_of(store)
    assert (chain.segments, chain.next_offset, chain.expired_facts) == ((), 20, sum(info.rows for info in infos))
    put(store, 20, 30)
    assert chain_of(store).faults == ()


def test_a_young_segment_keeps_the_old_ones_behind_it() -> None:
    store = DatedStore()
    put_all(store, [10, 20, 30])
    first = chain_of(store).segments[0]
    young = replace(first, archived_ns=500)
    store.replace(first.path, encode(young, read_table(store, first.path)[1]), store.list()[0].version)
    assert remove(store, 400) == Removed()


def test_a_merged_segment_is_as_old_as_its_newest_part() -> None:
    store = DatedStore()
    infos = put_all(store, [10, 20, 30])
    catalog = Catalog(store)
    catalog.refresh()
    merge(catalog, tuple(infos[:2]))
    assert remove(store, 10) == Removed()
    assert remove(store, 11).segments == 1


def test_a_gap_and_a_hole_expire_too() -> None:
    store = DatedStore()
    infos = put_all(store, [10, 20, 30, 40], gaps=[1])
    store.delete(infos[2].path)
    assert remove(store, 35) == Removed(3, sum(info.rows for info in infos) - infos[2].rows)
    chain = chain_of(store)
    assert [(one.base_offset, one.end_offset) for one in chain.expired] == [(0, 20), (30, 40)]
    assert chain.next_offset == 40
    assert chain.faults == (f"{CHAIN}: no segment covers offsets 20 to 30",)


def test_where_another_process_merges_first_nothing_is_lost() -> None:
    store = DatedStore()
    infos = put_all(store, [10, 20, 30, 40])
    kept = offsets_of(store, infos[1:])
    late = Catalog(store)
    late.refresh()
    merging = Catalog(store)
    merging.refresh()
    merge(merging, tuple(infos[1:3]))
    with pytest.raises(Changed):
        remove_older(late, CHAIN, 15)
    chain = chain_of(store)
    assert chain.start_offset == 10
    assert offsets_of(store, chain.segments) == kept
    assert chain.faults == ()


class DyingStore:
    """A store whose process dies at the n-th change."""

    def __init__(self, store: Store, changes: int) -> None:
        self._store = store
        self._left = changes

    def _change(self) -> None:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1

    def replace(self, path: str, data: Data, version: str) -> None:
        self._change()
        self._store.replace(path, data, version)

    def delete(self, path: str) -> None:
        self._change()
        self._store.delete(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@settings(max_examples=40)
@given(
    st.sets(st.integers(1, 40), min_size=1, max_size=8).map(sorted), st.lists(st.integers(0, 6), max_size=4), st.data()
)
def test_it_may_die_at_any_change_and_be_done_again(ends: list[int], deaths: list[int], data: st.DataObject) -> None:
    store = DatedStore()
    infos = put_all(store, ends)
    facts = {info.end_offset: offsets_of(store, [info]) for info in infos}
    before_ns = 0
    for changes in deaths:
        before_ns = data.draw(st.integers(before_ns, ends[-1] + 1))
        dying = Catalog(DyingStore(store, changes))
        dying.refresh()
        try:
            delete_superseded(dying, CHAIN)
            dying.refresh()
            remove_older(dying, CHAIN, before_ns)
        except KeyboardInterrupt:
            pass
        chain = chain_of(store)
        kept = [info for info in infos if info.base_offset >= chain.start_offset]
        assert chain.segments == tuple(kept)
        assert chain.expired_facts == sum(info.rows for info in infos) - sum(info.rows for info in kept)
        assert (chain.faults, chain.next_offset) == ((), ends[-1])
    catalog = Catalog(store)
    catalog.refresh()
    delete_superseded(catalog, CHAIN)
    catalog.refresh()
    remove_older(catalog, CHAIN, before_ns)
    kept = [info for info in infos if info.base_offset >= before_ns]
    chain = chain_of(store)
    assert chain.segments == tuple(kept)
    assert offsets_of(store, chain.segments) == [offset for info in kept for offset in facts[info.end_offset]]
    assert len(store.list()) == len(kept) + (len(kept) < len(infos))
