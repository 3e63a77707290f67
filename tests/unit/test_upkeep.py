"""Whatever is merged and removed, by however many at once, however often one dies: the facts stay the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from service.archive.archived_facts import FACT_SCHEMA, between
from service.archive.chain import Chain
from service.archive.errors import CannotReplace, StoreError
from service.archive.object_store import ObjectStore
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, read_table
from service.archive.store import Data, Store, StoredFile
from service.archive.upkeep import LONGEST_PAUSE_SECONDS, Upkeep
from service.metrics import UpkeepMetrics
from service.settings import Settings
from tests.archiver_stores import LeapingClock
from tests.chains import CHAIN, ENDS, chain_of, names, put, put_all

SECOND = 10**9


class Bench:
    """One process's upkeep."""

    def __init__(self, store: Store, **changes: Any) -> None:
        defaults = {"compact_parts": 2, "compact_rows": 64, "compact_after_seconds": 0}
        self.registry = CollectorRegistry()
        self.clock = LeapingClock()
        self.now_ns = SECOND
        self.upkeep = Upkeep(
            Settings(**{**defaults, **changes}), store, UpkeepMetrics(self.registry), self.clock, lambda: self.now_ns
        )

    def look(self) -> None:
        self.upkeep.look(threading.Event())

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"litehit_{name}", labels)


class Died(Exception):
    """A process's end."""


class BusyStore(ObjectStore):
    """Files are as old, in nanoseconds after 1970, as their base offset; before and after each change things happen."""

    def __init__(self) -> None:
        super().__init__("memory://")
        self.meanwhile: Callable[[], None] = lambda: None

    def list(self, prefix: str = "") -> list[StoredFile]:
        return [replace(file, modified_ns=int(Path(file.path).stem)) for file in super().list(prefix)]

    def replace(self, path: str, data: Data, version: str) -> None:
        self.meanwhile()
        super().replace(path, data, version)
        self.meanwhile()

    def delete(self, path: str) -> None:
        self.meanwhile()
        super().delete(path)
        self.meanwhile()


def facts_of(store: Store, chain: Chain) -> pa.Table:
    return pa.concat_tables([FACT_SCHEMA.empty_table(), *(read_table(store, one.path)[1] for one in chain.segments)])


@settings(max_examples=40)
@given(ENDS, st.sets(st.integers(0, 30), max_size=3), st.data())
def test_at_any_moment_reading_gives_the_same_facts(ends: list[int], gaps: set[int], data: st.DataObject) -> None:
    store = BusyStore()
    infos = put_all(store, ends, gaps)
    every = facts_of(store, chain_of(store))
    removed_before = 0

    def check() -> None:
        chain = chain_of(store)
        assert chain.faults == ()
        assert chain.next_offset == ends[-1]
        assert chain.start_offset <= removed_before + 80
        assert facts_of(store, chain) == between(every, chain.start_offset, ends[-1])
        assert chain.expired_facts == every.num_rows - sum(info.rows for info in chain.segments)
        assert {gap.base_offset for gap in chain.gaps} == {
            info.base_offset for info in infos if info.gap_end is not None and info.base_offset >= chain.start_offset
        }

    def process() -> Bench:
        bench = Bench(
            store,
            compact_parts=data.draw(st.integers(2, 4)),
            compact_rows=data.draw(st.sampled_from([0, 8, 32, 128])),
            retention_seconds=data.draw(st.sampled_from([None, 1])),
        )
        bench.now_ns = SECOND + removed_before
        return bench

    def meanwhile() -> None:
        check()
        what = data.draw(st.sampled_from(["nothing", "nothing", "nothing", "another", "die"]))
        if what == "die":
            raise Died
        if what == "another":
            store.meanwhile = check
            other = process()
            other.look()
            if data.draw(st.booleans()):
                other.look()
            store.meanwhile = meanwhile

    for _ in range(data.draw(st.integers(1, 4))):
        store.meanwhile = meanwhile
        removed_before = data.draw(st.integers(removed_before, ends[-1]))
        bench = process()
        try:
            bench.look()
            bench.look()
        except Died:
            continue
        check()
    store.meanwhile = check
    last = Bench(store, retention_seconds=1)
    last.now_ns = SECOND + removed_before
    for _ in range(8):
        last.look()
    chain = chain_of(store)
    assert chain.superseded == ()
    assert len(store.list()) == len(chain.segments) + len(chain.expired)
    assert len(chain.expired) <= 1


def test_only_what_was_seen_for_long_enough_is_merged() -> None:
    store = open_store("memory://")
    put_all(store, range(2, 20, 2))
    bench = Bench(store, compact_rows=16, compact_parts=4, compact_after_seconds=300)
    bench.look()
    bench.clock.leap(299)
    bench.look()
    assert len(store.list()) == 9
    bench.clock.leap(1)
    bench.look()
    assert names(store) == [0, 16]
    assert bench.metric("compactions_total", partition="0") == 1
    assert bench.metric("compacted_segments_total", partition="0") == 8
    bench.look()
    chain = chain_of(store)
    assert bench.metric("compacted_facts_total", partition="0") == chain.segments[0].rows
    assert bench.metric("store_segments", partition="0") == 2
    assert bench.metric("store_bytes", partition="0") == sum(file.size for file in store.list())


def test_generations_are_kept_apart_and_old_ones_expire_too() -> None:
    store = BusyStore()
    old, new = ChainKey(CHAIN.topic, "old", 0), CHAIN
    for key in (old, new):
        put_all(store, range(4, 44, 4), chain=key)
    put_all(store, [5], chain=ChainKey("other", "g", 0))
    bench = Bench(store, compact_rows=16, compact_parts=4, retention_seconds=1)
    bench.now_ns = SECOND + 20
    bench.look()
    for key in (old, new):
        chain = chain_of(store, key)
        assert (chain.start_offset, chain.next_offset, chain.faults) == (20, 40, ())
    assert bench.metric("retention_removed_segments_total", partition="0") == 10
    bench.now_ns = SECOND + 100
    bench.look()
    bench.look()
    assert bench.metric("store_segments", partition="0") == 0
    assert chain_of(store, old).next_offset == 40
    assert chain_of(store, ChainKey("other", "g", 0)).next_offset == 5


def test_a_chain_that_is_broken_is_left_and_the_others_are_kept() -> None:
    store = open_store("memory://")
    broken = ChainKey(CHAIN.topic, "broken", 0)
    infos = put_all(store, range(200, 2000, 200), chain=broken)
    put_all(store, range(4, 44, 4))
    victim = infos[1].path
    data = store.read(victim)
    store.delete(victim)
    store.create(victim, data[:300] + bytes(40) + data[340:])
    bench = Bench(store, compact_rows=1024, compact_parts=4)
    with capture_logs() as logs:
        bench.look()
        bench.look()
    assert bench.metric("upkeep_failures_total") == 2
    assert bench.metric("upkeep_failing") == 1
    (told,) = [entry for entry in logs if entry["event"] == "chain_not_kept"]
    assert victim in told["error"]
    assert [info.end_offset for info in chain_of(store, broken).segments] == list(range(200, 2000, 200))
    assert [info.end_offset for info in chain_of(store).segments] == [32, 36, 40]
    store.delete(victim)
    store.create(victim, data)
    bench.look()
    assert (bench.metric("upkeep_failures_total"), bench.metric("upkeep_failing")) == (2, 0)


class Refusing:
    """A store that can list and nothing more."""

    def __init__(self, error: StoreError) -> None:
        self._store = open_store("memory://")
        self._error = error
        self.asked = 0

    def replace(self, *_: Any) -> None:
        self.asked += 1
        raise self._error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Waits(threading.Event):
    """An event that is set in the end; notes how long it was waited for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.waited: list[float] = []
        self._count = count

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        if len(self.waited) == self._count:
            self.set()
        return self.is_set()


@pytest.mark.parametrize("error", [StoreError("away"), CannotReplace("no conditional put")])
def test_a_store_that_fails_is_asked_ever_more_seldom(error: StoreError) -> None:
    store = Refusing(error)
    put_all(store, [4, 8, 12, 16, 20])
    bench = Bench(store, upkeep_seconds=60)
    stop = Waits(6)
    bench.upkeep.run(stop)
    assert stop.waited == [120, 240, 480, 600, 600, 600]
    assert max(stop.waited) == LONGEST_PAUSE_SECONDS
    assert bench.metric("upkeep_failures_total") == 6 == store.asked
    assert bench.metric("upkeep_failing") == 1


def test_it_ends_between_two_merges_when_told_to() -> None:
    store = BusyStore()
    put_all(store, range(2, 80, 2))
    stop = threading.Event()
    store.meanwhile = stop.set
    Bench(store, compact_rows=8).upkeep.run(stop)
    assert len(names(store)) == 39 - 3


def test_one_look_costs_one_listing_and_no_reading_where_nothing_is_to_do() -> None:
    store = Counting()
    put_all(store, range(2, 40, 2))
    bench = Bench(store, compact_rows=16)
    for _ in range(4):
        bench.look()
    store.calls.clear()
    bench.look()
    assert store.calls == ["list"]
    put(store, 38, 40)
    store.calls.clear()
    bench.look()
    assert store.calls == ["list", "open"]


class Counting(ObjectStore):
    def __init__(self) -> None:
        super().__init__("memory://")
        self.calls: list[str] = []

    def list(self, prefix: str = "") -> list[StoredFile]:
        self.calls.append("list")
        return super().list(prefix)

    def open(self, path: str) -> pa.NativeFile:
        self.calls.append("open")
        return super().open(path)

    def read(self, path: str) -> bytes:
        self.calls.append("read")
        return super().read(path)
