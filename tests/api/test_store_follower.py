"""The index over a real store: the first load, segments that come later, and a store in trouble."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.fact import RequestFact
from service.api.follower import StoreFollower
from service.api.index import FactIndex, IndexLoading
from service.api.segment_reader import ParquetReader
from service.api.windows import TimeWindow
from service.archive.catalog import Catalog
from service.archive.errors import StoreError
from service.archive.local_store import LocalStore
from service.archive.segment import ChainKey, SegmentInfo, describe
from service.archive.segment_writer import encode
from service.archive.store import StoredFile
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
EVERYTHING = TimeWindow()


class OneLook(threading.Event):
    """Stops a loop when it waits for the first time."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class Scene:
    """A store, what follows it, and nothing that runs by itself."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root)
        self.index = FactIndex(ParquetReader(self.store), pages=root / "index", window_rows=1000)
        self.follower = StoreFollower(Catalog(self.store, CHAIN.topic), self.index, follow_seconds=60)

    def publish(self, facts: Sequence[RequestFact], base: int, chain: ChainKey = CHAIN) -> SegmentInfo:
        table = rows_of(facts, base).to_table()
        info = describe(chain, base, base + len(facts), table)
        self.store.create(info.path, encode(info, table))
        return info

    def refresh(self) -> None:
        self.follower.refresh(threading.Event())

    def requests(self, window: TimeWindow = EVERYTHING) -> int:
        return sum(sums.requests for _, sums in self.index.select(window, None).groups)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_nothing_is_answered_before_the_store_is_summed(scene: Scene) -> None:
    scene.publish([fact(1)], 0)
    with pytest.raises(IndexLoading):
        scene.requests()
    scene.refresh()
    assert scene.requests() == 1


def test_segments_of_every_generation_and_partition_and_of_no_other_topic(scene: Scene) -> None:
    scene.publish([fact(1), fact(2)], 0)
    scene.publish([fact(3)], 2)
    scene.publish([fact(4)], 0, ChainKey(CHAIN.topic, "g0", 0))
    scene.publish([fact(5)], 0, ChainKey(CHAIN.topic, "g1", 1))
    scene.publish([fact(6)], 0, ChainKey("another", "g1", 0))
    scene.refresh()
    assert scene.requests() == 5
    as_of = scene.index.select(EVERYTHING, None).as_of
    assert [(key.generation, key.partition, reach.next_offset) for key, reach in as_of] == [
        ("g0", 0, 1),
        ("g1", 0, 3),
        ("g1", 1, 1),
    ]


def test_segments_that_come_later_are_summed_once(scene: Scene) -> None:
    scene.refresh()
    assert scene.requests() == 0
    scene.publish([fact(1), fact(2)], 0)
    scene.refresh()
    scene.refresh()
    assert scene.requests() == 2
    scene.publish([fact(3)], 2)
    scene.refresh()
    assert scene.requests() == 3
    assert scene.requests(TimeWindow(2, 3)) == 1


def test_a_segment_that_the_archiver_of_this_process_announced_is_known(scene: Scene) -> None:
    scene.refresh()
    scene.index.appended(CHAIN, rows_of([fact(1), fact(2), fact(3)], 0))
    info = scene.publish([fact(1), fact(2)], 0)
    scene.refresh()  # the follower sees it before the archiver tells
    scene.index.published(info)
    assert scene.requests() == 3
    assert scene.index.size().tail_facts == 1


def test_a_window_across_segments_and_tail(scene: Scene) -> None:
    scene.publish([fact(time, (1, 1)) for time in (5, 1, 9)], 0)
    scene.publish([fact(time, (1, 1)) for time in (4, 20)], 3)
    scene.refresh()
    scene.index.appended(CHAIN, rows_of([fact(7), fact(30)], 5))
    assert scene.requests(TimeWindow(4, 10)) == 4


def test_a_damaged_segment_is_named_and_nothing_is_answered_without_it(scene: Scene, tmp_path: Path) -> None:
    info = scene.publish([fact(1)], 0)
    path = tmp_path / info.path
    times = pq.read_metadata(path).row_group(0).column(2).data_page_offset
    content = bytearray(path.read_bytes())
    content[times : times + 36] = bytes(36)  # the footer stays whole
    path.write_bytes(content)
    scene.follower.run(OneLook())
    assert any(info.path in one for one in scene.follower.waiting())
    with pytest.raises(IndexLoading):
        scene.requests()


def test_a_store_that_fails_is_asked_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prefix: str = "") -> list[StoredFile]:
        raise StoreError("the store is away")

    scene.publish([fact(1)], 0)
    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "list", fail)
        scene.follower.run(OneLook())
    assert scene.follower.waiting() == ("the store can't be followed: the store is away",)
    scene.follower.run(OneLook())
    assert scene.follower.waiting() == ()
    assert scene.requests() == 1
