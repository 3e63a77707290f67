"""A publisher is held back by what is outstanding over all partitions, and goes on as it is consumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import pytest

from service.lag_window import LagWindow


class Group:
    """A consumer group that reads one more record of each partition at every look."""

    def __init__(self) -> None:
        self.next_offsets: dict[int, int] = {}
        self.looks = 0

    def committed(self, partitions: Iterable[int]) -> Mapping[int, int]:
        self.looks += 1
        for partition in partitions:
            self.next_offsets[partition] = self.next_offsets.get(partition, 0) + 1
        return self.next_offsets


def test_nobody_is_asked_while_there_is_room() -> None:
    group = Group()
    window = LagWindow(100, group.committed, wait=lambda _: None)
    window.sent(100)
    window.make_room()
    assert group.looks == 0


def test_room_is_made_by_consumption_over_all_partitions() -> None:
    group = Group()
    waits: list[float] = []
    window = LagWindow(100, group.committed, wait=waits.append)
    for offset in range(3):
        for partition in (0, 1):
            window.sent(50)
            window.delivered(partition, offset, 50)
    window.make_room()
    assert not window.is_full()
    assert group.next_offsets == {0: 2, 1: 2}
    assert len(waits) == 1


def test_records_on_their_way_count_before_they_are_delivered() -> None:
    group = Group()

    def deliver(_: float) -> None:
        window.delivered(0, 0, 101)

    window = LagWindow(100, group.committed, wait=deliver)
    window.sent(101)
    window.make_room()
    assert not window.is_full()


def test_waiting_is_told_with_the_time_since_anything_was_consumed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("service.lag_window.time", SimpleNamespace(monotonic=lambda: clock.now))
    told: list[float] = []

    def wait(_: float) -> None:
        clock.now += 1

    def committed(_: Iterable[int]) -> Mapping[int, int]:
        return {0: 0 if clock.now < 2 else 1 if clock.now < 5 else 2}

    window = LagWindow(50, committed, wait, told.append)
    for offset in range(3):
        window.sent(50)
        window.delivered(0, offset, 50)
    window.make_room()
    assert told == [0, 1, 0, 1, 2]
