"""A time in another unit than nanoseconds is told, one that counts from a trace's start is not."""

from __future__ import annotations

import pytest

from litehit.time_units import other_unit

NOW_NS = 1_790_000_000 * 10**9


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (1_780_000_000, "timestamp_ns 1780000000 looks like seconds since 1970, .*send 1780000000000000000$"),
        (
            1_780_000_000_123,
            "looks like milliseconds since 1970, .* milliseconds are meant, send 1780000000123000000$",
        ),
        (1_780_000_000_123_456, "looks like microseconds since 1970, .*send 1780000000123456000$"),
    ],
)
def test_a_time_of_our_days_in_another_unit_is_told(time: int, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(other_unit(time, NOW_NS, years=1))


@pytest.mark.parametrize("unit", [1, 10**3, 10**6])
def test_it_is_told_within_the_years(unit: int) -> None:
    year = 365 * 86_400
    for seconds, told in ((NOW_NS // 10**9 - 2 * year, False), (NOW_NS // 10**9 - year // 2, True)):
        assert (other_unit(seconds * unit, NOW_NS, years=1) is not None) is told
        assert other_unit(seconds * unit, NOW_NS, years=3) is not None


@pytest.mark.parametrize("time", [-1, 0, 1, 999_999_999, 3 * 10**9, 18 * 10**11, 10**13, 10**16, NOW_NS, 2**63 - 1])
def test_times_since_a_start_and_in_nanoseconds_are_not(time: int) -> None:
    """Half an hour after the start of a trace, 1.8e12, would be milliseconds of 2027."""
    assert other_unit(time, NOW_NS - (10**17 if time == 18 * 10**11 else 0), years=1) is None
