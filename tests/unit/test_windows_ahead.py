from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from litehit.window import Window
from litehit.windows_ahead import read_ahead


def windows(count: int) -> Iterator[Window]:
    for number in range(count):
        yield Window(b"%d\n" % number, [number])


def number_of(window: Window) -> int:
    return window.numbers[0]


def no_stop() -> None:
    """Nothing is waited for."""


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_they_come_in_their_order(workers: int, count: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert list(read_ahead(windows(count), number_of, pool, workers, no_stop)) == list(range(count))


def test_the_next_ones_are_read_while_one_is_used() -> None:
    began = [threading.Event() for _ in range(6)]

    def read(window: Window) -> int:
        began[window.numbers[0]].set()
        return window.numbers[0]

    with ThreadPoolExecutor(2) as pool:
        coming = read_ahead(windows(6), read, pool, 2, no_stop)
        assert next(coming) == 0
        assert all(event.wait(60) for event in began[:3])
        assert not began[3].is_set()
        assert list(coming) == [1, 2, 3, 4, 5]


def test_what_fails_fails_in_its_place_and_no_thread_stays() -> None:
    def broken() -> Iterator[Window]:
        yield from windows(2)
        raise OSError("torn")

    before = threading.active_count()
    with ThreadPoolExecutor(2) as pool:
        coming = read_ahead(broken(), number_of, pool, 2, no_stop)
        assert [next(coming), next(coming)] == [0, 1]
        with pytest.raises(OSError, match="torn"):
            next(coming)
    assert threading.active_count() == before


def test_while_the_next_is_waited_for_the_pool_is_free_and_none_is_waited_for_at_the_end() -> None:
    stopped = threading.Event()

    def slow() -> Iterator[Window]:
        yield from windows(1)
        assert stopped.wait(60)

    before = threading.active_count()
    with ThreadPoolExecutor(1) as pool:
        coming = read_ahead(slow(), number_of, pool, 1, stopped.set)
        assert next(coming) == 0
        assert pool.submit(stopped.is_set).result(60) is False
        coming.close()
    assert threading.active_count() == before
