"""When snapshots are taken; that they wait for nobody, and that a store that fails is survived."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from litehit.registry import Registry
from service.archive.open_store import open_store
from service.archive.store import Data, Store
from service.lanes.lane import Lane
from service.lanes.restore import RestorePlan
from service.lanes.restorer import Restored
from service.lanes.snapshot import Snapshot
from service.lanes.snapshots import Snapshots
from service.lanes.snapshotter import Snapshotter
from service.metrics import LanesMetrics
from service.settings import Settings
from tests import lanes_harness as harness
from tests import snapshots_made as made
from tests.archiver_stores import RefusingStore

RECORDS = {partition: made.records_of(harness.make_requests(200, seed=71), 0, partition) for partition in (0, 1, 2)}


class SlowStore:
    """A store whose creates wait until they are let through."""

    def __init__(self) -> None:
        self.url = "slow"
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self._store: Store = open_store("memory://")

    def create(self, path: str, data: Data) -> None:
        self.begun.release()
        assert self.go.wait(30)
        self._store.create(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Bench:
    """A snapshotter and lanes for it."""

    def __init__(self, known: Registry, store: Any, **changes: Any) -> None:
        self.known = known
        self.registry = CollectorRegistry()
        self.snapshots = Snapshots(store, made.TOPIC)
        self.snapshotter = Snapshotter(Settings(**changes), self.snapshots, LanesMetrics(self.registry))

    def lane(self, partition: int, restored: Snapshot | None = None) -> Lane:
        lane = made.new_lane(self.known, restored, partition)
        self.snapshotter.begun(Restored(lane, RestorePlan(lane.next_offset, lane.next_offset), restored, 0))
        return lane

    def offsets(self, partition: int) -> list[int]:
        return [one.next_offset for one in self.snapshots.readable(partition)]

    def failures(self, partition: int) -> float:
        return self.registry.get_sample_value("litehit_snapshot_failures_total", {"partition": str(partition)}) or 0.0

    def settle(self, lanes: list[Lane], *wanted: int) -> None:
        """Rounds of a loop until the lanes have snapshots at these offsets."""

        def settled() -> bool:
            self.snapshotter.take_one(lanes)
            newest = [self.snapshotter.newest(lane.partition) for lane in lanes]
            return [one.next_offset if one is not None else None for one in newest] == list(wanted)

        harness.wait_for(settled)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


def test_the_first_is_taken_at_once_and_then_none_before_its_time_or_of_an_idle_lane(known: Registry) -> None:
    bench = Bench(known, open_store("memory://"), snapshot_seconds=3600, snapshot_records=50)
    lane = bench.lane(0)
    bench.snapshotter.take_one([lane])
    assert bench.offsets(0) == []  # nothing was processed
    lane.process(harness.read(RECORDS[0][:10]))
    bench.settle([lane], 10)
    lane.process(harness.read(RECORDS[0][10:59]))
    bench.snapshotter.take_one([lane])
    bench.snapshotter.take_all([])
    assert bench.offsets(0) == [10]
    lane.process(harness.read(RECORDS[0][59:60]))
    bench.settle([lane], 60)
    lane.process(harness.read(RECORDS[0][60:109]))
    bench.snapshotter.take_one([lane])
    bench.snapshotter.take_all([])
    assert bench.offsets(0) == [60, 10]


def test_its_time_comes_for_each_lane_in_turn(known: Registry) -> None:
    bench = Bench(known, open_store("memory://"), snapshot_seconds=0.001)
    lanes = [bench.lane(partition) for partition in (0, 1, 2)]
    for low, high in ((0, 40), (40, 90)):
        for lane in lanes:
            lane.process(harness.read(RECORDS[lane.partition][low:high]))
        bench.settle(lanes, high, high, high)
    assert [bench.offsets(partition) for partition in (0, 1, 2)] == [[90, 40]] * 3


def test_the_lane_goes_on_while_its_snapshot_is_written(known: Registry) -> None:
    store = SlowStore()
    bench = Bench(known, store, snapshot_seconds=0.001)
    lane = bench.lane(0)
    lane.process(harness.read(RECORDS[0][:50]))

    def begun() -> bool:
        bench.snapshotter.take_one([lane])
        return store.begun.acquire(blocking=False)

    harness.wait_for(begun)
    lane.process(harness.read(RECORDS[0][50:100]))
    bench.snapshotter.take_one([lane])  # one at a time: no second is begun
    assert not store.begun.acquire(timeout=0.05)
    store.go.set()
    bench.settle([lane], 100)
    assert bench.offsets(0) == [100, 50]
    fifty = made.new_lane(known, partition=0)
    fifty.process(harness.read(RECORDS[0][:50]))
    assert made.same(list(bench.snapshots.readable(0))[1], made.snapshot_of(fifty))


def test_the_last_snapshots_are_waited_for_until_a_deadline(
    known: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    store = SlowStore()
    bench = Bench(known, store, snapshot_seconds=3600, snapshot_deadline_seconds=0.2)
    lanes = [bench.lane(0), bench.lane(1)]
    for lane in lanes:
        lane.process(harness.read(RECORDS[lane.partition][:50]))
    began = time.monotonic()
    bench.snapshotter.take_all(lanes)
    assert 0.2 <= time.monotonic() - began < 10
    assert "snapshot_given_up" in capsys.readouterr().out
    store.go.set()
    bench.snapshotter.take_all(lanes)
    assert (bench.offsets(0), bench.offsets(1)) == ([50], [50])


def test_a_full_store_is_told_and_tried_again(known: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    store = RefusingStore("memory://")
    bench = Bench(known, store, snapshot_seconds=0.001)
    lane = bench.lane(0)
    lane.process(harness.read(RECORDS[0][:50]))
    store.refuse()

    def failed_twice() -> bool:
        bench.snapshotter.take_one([lane])
        return bench.failures(0) >= 2

    harness.wait_for(failed_twice)
    told = capsys.readouterr().out
    assert "snapshot_failed" in told
    assert "No space left on device" in told
    assert "Traceback" not in told
    store.allow()
    bench.settle([lane], 50)


def test_a_changed_registry_is_noted_in_a_snapshot_at_once(known: Registry, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("changed") / "registry.yaml"
    path.write_text(harness.REGISTRY.replace("1024", "512"), encoding="utf-8")
    kept = made.made_snapshot(known, 50, partition=0)
    for registry, taken in ((known, False), (Registry.load(path), True)):
        bench = Bench(registry, open_store("memory://"), snapshot_seconds=3600)
        lane = bench.lane(0, kept)
        lane.go_live()
        bench.snapshotter.take_one([lane])
        bench.snapshotter.take_all([lane])
        assert bench.offsets(0) == []  # nothing was processed since
        lane.process(harness.read(RECORDS[0][50:60]))
        bench.snapshotter.take_one([lane])
        bench.snapshotter.take_all([])
        assert bench.offsets(0) == ([60] if taken else [])
