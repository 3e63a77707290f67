"""Windows of time: parsing, formatting, and the half-open rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.windows import TimeWindow, format_time, parse_time

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-5, 5)
OPEN_OR_SMALL = st.none() | SMALL


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1970-01-01t01:00:00+01:00", 0),
        ("1970-01-01 00:00:01.5z", 1_500_000_000),
        ("2025-01-31T09:30:00.123456789-02:30", 1_738_324_800_123_456_789),
    ],
)
def test_times_are_read_to_the_nanosecond(text: str, nanoseconds: int) -> None:
    assert parse_time(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither"),
        ("yesterday", "neither"),
        ("1e9", "neither"),
        ("1.5", "neither"),
        ("2025-01-31", "neither"),
        ("2025-01-31T09:30:00", "offset"),
        ("2025-01-31T09:30:00 02:00", "%2B"),
        ("٣", "neither"),
        ("9" * 5000, "neither"),
        ("2025-01-31T09:30:00.1234567890Z", "10 digits"),
        ("2025-02-30T09:30:00Z", "calendar"),
        ("9223372036854775808", "outside 64-bit nanoseconds"),
        ("9999-12-31T23:59:59Z", "outside 64-bit nanoseconds"),
        ("0001-01-01T00:00:00+02:00", "outside 64-bit nanoseconds"),
    ],
)
def test_what_is_no_time_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_time(text)


@given(INT64)
def test_every_time_comes_back_from_both_forms(nanoseconds: int) -> None:
    assert parse_time(str(nanoseconds)) == nanoseconds
    assert parse_time(format_time(nanoseconds)) == nanoseconds


@given(
    st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    st.integers(-23 * 60, 23 * 60),
    st.integers(0, 999),
)
def test_times_agree_with_the_standard_library(moment: datetime, offset_minutes: int, nanoseconds: int) -> None:
    local = moment.astimezone(timezone(timedelta(minutes=offset_minutes)))
    text = local.isoformat(timespec="microseconds")
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_time(f"{text[:-6]}{nanoseconds:03d}{text[-6:]}") == microseconds * 1000 + nanoseconds


@given(OPEN_OR_SMALL, OPEN_OR_SMALL, st.lists(SMALL, min_size=1))
def test_a_window_is_half_open(from_ns: int | None, to_ns: int | None, times: list[int]) -> None:
    window = TimeWindow(from_ns, to_ns)
    inside = [(from_ns is None or from_ns <= time) and (to_ns is None or time < to_ns) for time in times]
    assert window.mask(np.array(times, np.int64)).tolist() == inside
    assert window.covers(min(times), max(times)) == all(inside)
    # A span may overlap without one of its instants among `times`, never the other way round.
    assert window.overlaps(min(times), max(times)) or not any(inside)
    if len(times) == 1:
        assert window.overlaps(times[0], times[0]) == inside[0]
