"""Instants in another unit are refused rather than taken for a moment of 1970."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.instants import parse_instant
from service.api.windows import format_time, parse_time


@pytest.mark.parametrize(
    ("text", "unit", "meant"),
    [
        ("1738315800", "seconds", 1738315800 * 10**9),
        ("99999999999", "seconds", 99999999999 * 10**9),
        ("1738315800123", "milliseconds", 1738315800123 * 10**6),
        ("100000000000", "milliseconds", 10**17),
    ],
)
def test_what_looks_like_another_unit_is_told(text: str, unit: str, meant: int) -> None:
    with pytest.raises(ValueError, match=f"looks like {unit}.* send {meant},.* {format_time(int(text))} is meant"):
        parse_instant(text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_other_integer_and_every_moment_written_out_is_taken(nanoseconds: int) -> None:
    assert parse_instant(format_time(nanoseconds)) == nanoseconds
    if not 10**9 <= nanoseconds < 10**13:
        assert parse_instant(str(nanoseconds)) == parse_time(str(nanoseconds)) == nanoseconds
