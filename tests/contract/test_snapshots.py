"""The snapshots of lanes in every kind of store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from litehit.registry import Registry
from service.archive.open_store import open_store
from service.archive.store import Store
from service.errors import SnapshotDamaged
from service.lanes.committed import RequestsTopic
from service.lanes.snapshot import Reset, Snapshot, encode
from service.lanes.snapshots import KEPT, Snapshots
from tests import lanes_harness as harness
from tests import snapshots_made as made


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    urls: dict[str, Callable[[], str]] = {"folder": lambda: str(tmp_path / "store"), "memory": lambda: "memory://"}
    return open_store(urls[request.param]())


@pytest.fixture
def snapshots(store: Store) -> Snapshots:
    return Snapshots(store, made.TOPIC)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


@pytest.fixture(scope="module")
def kept(known: Registry) -> Snapshot:
    return made.made_snapshot(known, 60)


def at(kept: Snapshot, offset: int, **changes: object) -> Snapshot:
    return replace(kept, next_offset=offset, **changes)  # type: ignore[arg-type]


def offsets(snapshots: Snapshots, partition: int = 3) -> list[int]:
    return [snapshot.next_offset for snapshot in snapshots.readable(partition)]


def test_what_is_written_is_read_newest_first(snapshots: Snapshots, kept: Snapshot) -> None:
    sizes = [snapshots.write(at(kept, offset)) for offset in (90, 1000)]
    assert sizes == [file.size for file in reversed(snapshots.files(3))]
    assert offsets(snapshots) == [1000, 90]
    (newest, _) = snapshots.readable(3)
    assert made.same(newest, at(kept, 1000))
    assert offsets(snapshots, partition=2) == []


def test_the_newest_three_are_kept_of_each_partition(snapshots: Snapshots, kept: Snapshot) -> None:
    for offset in (1, 2, 3, 4, 5):
        snapshots.write(at(kept, offset))
        snapshots.write(at(kept, offset, partition=1))
    assert offsets(snapshots) == offsets(snapshots, partition=1) == [5, 4, 3]
    assert KEPT == 3


def test_a_group_that_is_behind_deletes_nothing_ahead_of_it(snapshots: Snapshots, kept: Snapshot) -> None:
    for offset in (100, 200, 300):
        snapshots.write(at(kept, offset))
    snapshots.write(at(kept, 50))
    assert offsets(snapshots) == [300, 200, 100, 50]


def test_generations_and_topics_do_not_mix(store: Store, snapshots: Snapshots, kept: Snapshot) -> None:
    snapshots.write(kept)
    for topic in (RequestsTopic("requests", "another", 4), RequestsTopic("events", "generation", 4)):
        others = Snapshots(store, topic)
        assert list(others.readable(3)) == []
        others.write(replace(kept, topic=topic))
        assert len(list(others.readable(3))) == 1
    assert len(list(snapshots.readable(3))) == 1


def test_a_damaged_one_falls_back_to_the_one_before(
    store: Store, snapshots: Snapshots, kept: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots.write(at(kept, 90))
    newest = at(kept, 100)
    store.create(newest.path, bytes(encode(newest))[:-1])
    assert offsets(snapshots) == [90]
    told = capsys.readouterr().out
    assert "snapshot_damaged" in told
    assert newest.path in told
    with pytest.raises(SnapshotDamaged, match="its arrays end at"):
        snapshots.read(newest.path)


def test_a_name_that_is_taken_is_replaced_only_where_it_says_another_thing(
    store: Store, snapshots: Snapshots, kept: Snapshot
) -> None:
    snapshots.write(kept)
    before = store.list()
    snapshots.write(kept)
    assert store.list() == before
    store.delete(kept.path)
    store.create(kept.path, b"torn")
    snapshots.write(kept)
    assert offsets(snapshots) == [60]
    snapshots.write(replace(kept, history=1))
    assert [snapshot.history for snapshot in snapshots.readable(3)] == [1]


def test_a_reset_stands_alone(store: Store, snapshots: Snapshots, kept: Snapshot) -> None:
    for offset in (60, 70, 80):
        snapshots.write(at(kept, offset))
        snapshots.write(at(kept, offset, partition=0))
    chosen = at(kept, 70, history=1, reset=Reset("group", 70), instances=())
    snapshots.replace_all(chosen)
    (left,) = snapshots.readable(3)
    assert left.reset == Reset("group", 70)
    assert offsets(snapshots, partition=0) == [80, 70, 60]
    snapshots.delete_all()
    assert store.list() == []
