"""A time in another unit than nanoseconds is told, one that counts from a trace's start is not."""

from __future__ import annotations

import pytest

from litehit.time_units import other_unit


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (1_750_000_000, "looks like seconds since 1970, .*send 1750000000000000000$"),
        (1_750_000_000_123, "looks like milliseconds since 1970, .* 1,000,000 times .*send 1750000000123000000$"),
        (1_750_000_000_123_456, "looks like microseconds since 1970, .*send 1750000000123456000$"),
    ],
)
def test_a_time_of_our_days_in_another_unit_is_told(time: int, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(other_unit(time))


@pytest.mark.parametrize("time", [-1, 0, 1, 999_999_999, 5 * 10**9, 10**11, 10**13, 10**16, 1_750 * 10**15, 2**63 - 1])
def test_others_are_not(time: int) -> None:
    assert other_unit(time) is None
