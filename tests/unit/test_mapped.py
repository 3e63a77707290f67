from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit import mapped
from litehit.mapped import MappedArray


@pytest.fixture(params=["in place", "by copy"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by copy":
        monkeypatch.setattr(mapped, "_HUGE_PAGES", None)


def test_elements_are_kept_and_new_ones_are_zero() -> None:
    @given(sizes=st.lists(st.integers(0, 3_000), max_size=8))
    def check(sizes: list[int]) -> None:
        numbers = MappedArray(np.int32)
        expected = np.zeros(0, np.int32)
        for step, size in enumerate(sizes, start=1):
            numbers.resize(size)
            grown = np.zeros(size, np.int32)
            kept = min(size, len(expected))
            grown[:kept] = expected[:kept]
            assert np.array_equal(numbers.array, grown)
            numbers.array[:] += step
            expected = grown + step

    check()


def test_it_is_an_array_of_its_type() -> None:
    words = MappedArray(np.uint64, 5)
    words.array[4] = np.uint64(2**64 - 1)
    assert words.array.dtype == np.uint64
    assert words.array.sum() == np.uint64(2**64 - 1)
    assert words.array.flags.writeable


def test_many_megabytes_survive_growth() -> None:
    numbers = MappedArray(np.int64, 1_000_000)
    numbers.array[:] = np.arange(1_000_000)
    numbers.resize(5_000_000)
    assert np.array_equal(numbers.array[:1_000_000], np.arange(1_000_000))
    assert not numbers.array[1_000_000:].any()


def test_a_view_that_nobody_can_reach_holds_nothing_up() -> None:
    numbers = MappedArray(np.int64, 10)
    numbers.array[:] = 7
    gc.disable()
    try:
        cycle: list[object] = [numbers.array[2:5]]
        cycle.append(cycle)
        del cycle
        numbers.resize(100_000)
    finally:
        gc.enable()
    assert numbers.array[:10].tolist() == [7] * 10
    assert not numbers.array[10:].any()


def test_a_view_that_is_kept_never_sees_freed_memory() -> None:
    numbers = MappedArray(np.int64, 10)
    view = numbers.array[2:5]
    if mapped._HUGE_PAGES is None:
        numbers.resize(100_000)
    else:
        with pytest.raises(BufferError):
            numbers.resize(100_000)
    assert view.tolist() == [0, 0, 0]
