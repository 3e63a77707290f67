"""Whose restore is begun next, and what becomes of one that ends."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from litehit.registry import Registry
from service.archive.errors import StoreError
from service.errors import CannotRestore
from service.lanes import seat as seats_module
from service.lanes.restore import RestorePlan, Standing
from service.lanes.restorer import Restored
from service.lanes.seat import Phase, Seat
from service.lanes.status import LaneState
from service.lanes.usher import Usher
from tests import lanes_harness as harness
from tests import snapshots_made as made


class Reading:
    """A consumer that notes what it is told."""

    def __init__(self) -> None:
        self.paused: list[int] = []
        self.begun: dict[int, int] = {}

    def read_from(self, partition: int, offset: int) -> None:
        self.begun[partition] = offset

    def pause(self, partitions: list[int]) -> None:
        self.paused += partitions


class Standings:
    """Never asked by the thread that calls the usher, whose loop other lanes wait for."""

    def ask(self, partition: int) -> Standing:
        raise AssertionError(f"asked about {partition}")


class Restores:
    """Restores that end when and as a test says."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.running: Future[Restored] = Future()

    def start(self, partition: int, _: Callable[[int], Standing]) -> Future[Restored]:
        self.started.append(partition)
        self.running = Future()
        return self.running


class Stage:
    """An usher, its seats, and a clock that stands."""

    def __init__(self, known: Registry, partitions: int, clock: SimpleNamespace) -> None:
        self.known = known
        self.clock = clock
        self.questions = Reading()
        self.restores = Restores()
        self.seats = {partition: Seat(partition) for partition in range(partitions)}
        self.begun: list[int] = []
        consumer: Any = self.questions
        restorer: Any = self.restores
        standings: Any = Standings()
        self.usher = Usher(consumer, standings, restorer, lambda seat, _: self.begun.append(seat.partition))

    def step(self) -> None:
        self.usher.step(self.seats)

    def end(self, result: Restored | Exception) -> None:
        if isinstance(result, Exception):
            self.restores.running.set_exception(result)
        else:
            self.restores.running.set_result(result)
        self.step()

    def empty(self, partition: int) -> Restored:
        return Restored(made.new_lane(self.known, None, partition), RestorePlan(0, 0), None, 10)


@pytest.fixture
def known(tmp_path: Path) -> Registry:
    return harness.registry(tmp_path)


@pytest.fixture
def stage(known: Registry, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    clock = SimpleNamespace(now=100.0)
    for module in ("seat", "usher"):
        monkeypatch.setattr(f"service.lanes.{module}.time", SimpleNamespace(monotonic=lambda: clock.now))

    return lambda partitions: Stage(known, partitions, clock)


def test_partitions_that_cannot_be_asked_about_let_the_others_begin(stage: Callable[..., Stage]) -> None:
    one = stage(4)
    for _ in range(40):
        one.step()
        if not any(seat.phase is Phase.RESTORING for seat in one.seats.values()):
            break
        partition = one.restores.started[-1]
        one.clock.now += 0.5
        silent = partition in {0, 1}
        one.end(KafkaException(KafkaError(KafkaError._TIMED_OUT)) if silent else one.empty(partition))
    assert one.begun == [2, 3]
    assert [seat.end_offset for seat in one.seats.values()] == [None, None, 10, 10]
    assert len(one.restores.started) < 20  # ever more seldom


def test_a_partition_whose_snapshots_cannot_be_read_lets_the_others_begin(stage: Callable[..., Stage]) -> None:
    one = stage(2)
    one.step()
    one.end(StoreError("away"))
    one.step()
    assert one.restores.started == [0, 1]
    one.end(one.empty(1))
    assert one.begun == [1]
    one.step()
    assert one.restores.started == [0, 1]  # not at once
    one.clock.now += seats_module._BACKOFF_SECONDS[0]
    one.step()
    assert one.restores.started == [0, 1, 0]
    one.end(StoreError("away"))
    one.clock.now += seats_module._BACKOFF_SECONDS[0]
    one.step()
    assert one.restores.started == [0, 1, 0]  # later each time
    one.clock.now += seats_module._BACKOFF_SECONDS[1]
    one.step()
    one.end(one.empty(0))
    assert one.begun == [1, 0]


def test_refused_partitions_leave_the_waiting_their_turn(stage: Callable[..., Stage]) -> None:
    one = stage(3)
    for _ in range(2):
        one.step()
        one.end(CannotRestore("it would start cold"))
    one.step()
    one.end(StoreError("away"))
    for _ in range(4):
        one.clock.now += seats_module._AGAIN_SECONDS
        one.step()
        if one.restores.started[-1] == 2:
            one.end(one.empty(2))
            break
        one.end(CannotRestore("it would start cold"))
    assert one.begun == [2]


def test_a_restore_that_ends_after_its_lane_was_stopped_revives_nothing(stage: Callable[..., Stage]) -> None:
    one = stage(1)
    one.step()
    one.usher.stop_seat(one.seats[0], "the topic was recreated while it was read")
    one.end(one.empty(0))
    assert (one.seats[0].state, one.seats[0].lane) == (LaneState.STOPPED, None)
    assert (one.begun, one.questions.begun, one.questions.paused) == ([], {}, [0])


def test_a_restore_that_ends_after_its_partition_went_is_dropped(stage: Callable[..., Stage]) -> None:
    one = stage(1)
    one.step()
    one.seats[0] = Seat(0)  # given back, and given again
    one.end(one.empty(0))
    assert (one.begun, one.seats[0].phase) == ([], Phase.WAITING)
    one.step()
    assert one.restores.started == [0, 0]


def test_after_an_abort_nothing_is_restored_for_a_while(stage: Callable[..., Stage]) -> None:
    one = stage(1)
    one.usher.back_off()
    one.step()
    assert one.restores.started == [0]  # the first time at once
    one.end(one.empty(0))
    one.seats[0].wait()
    one.usher.back_off()
    one.step()
    assert one.restores.started == [0]
    one.clock.now += 0.1
    one.step()
    assert one.restores.started == [0, 0]


def test_a_lane_that_is_dropped_gives_its_memory_back(stage: Callable[..., Stage]) -> None:
    one = stage(1)
    one.step()
    restored = one.empty(0)
    lane = weakref.ref(restored.lane)
    one.end(restored)
    one.restores.running = Future()
    del restored
    one.seats[0].wait()
    gc.collect()
    assert lane() is None
