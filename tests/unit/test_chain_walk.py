from __future__ import annotations

import pytest

from service.archive.catalog import Catalog
from service.archive.chain_walk import ChainWalk
from service.archive.errors import Changed, FactsExpired
from service.archive.merge import merge
from service.archive.open_store import open_store
from service.archive.retention import remove_older
from service.archive.store import Store
from tests.chains import CHAIN, put, put_all


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def catalog_of(store: Store) -> Catalog:
    catalog = Catalog(store)
    catalog.refresh()
    return catalog


def walk_of(store: Store) -> ChainWalk:
    catalog = catalog_of(store)
    return ChainWalk(catalog, catalog.view.chain(CHAIN))


def test_it_goes_from_segment_to_segment(store: Store) -> None:
    infos = put_all(store, [5, 10])
    walk = walk_of(store)
    assert (walk.segment, walk.part) == (infos[0], (0, 10))
    walk.passed(3)
    assert (walk.segment, walk.part) == (infos[0], (3, 10))
    walk.passed(5)
    assert walk.segment == infos[1]
    walk.passed(10)
    assert walk.segment is None
    assert walk_of(open_store("memory://")).segment is None


def test_what_was_merged_is_read_from_where_it_had_come_to_up_to_where_it_ended(store: Store) -> None:
    infos = put_all(store, [5, 10, 15])
    walk = walk_of(store)
    walk.passed(7)
    later = put(store, 15, 20)
    whole = merge(catalog_of(store), (*infos, later))
    walk.look_again(Changed(infos[1].path))
    assert (walk.segment, walk.part) == (whole, (7, 15))
    walk.passed(whole.end_offset)
    assert walk.segment is None


def test_what_expired_is_told_unless_it_was_read(store: Store) -> None:
    infos = put_all(store, [5, 10, 15])
    walk = walk_of(store)
    walk.passed(10)
    catalog = catalog_of(store)
    remove_older(catalog, CHAIN, catalog.archived_ns(infos[1]) + 1)
    assert walk.segment == infos[2], "those before it are not asked for again"
    remove_older(catalog, CHAIN, 2**62)
    with pytest.raises(FactsExpired, match="before offset 15 were removed"):
        walk.look_again(Changed(infos[2].path))


def test_where_nothing_has_changed_the_error_is_the_answer(store: Store) -> None:
    infos = put_all(store, [5, 10])
    walk = walk_of(store)
    with pytest.raises(Changed, match=infos[0].path):
        walk.look_again(Changed(infos[0].path))
