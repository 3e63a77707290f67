"""Instants in another unit are refused rather than taken for a moment of 1970 that selects nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.instants import check_unit
from service.api.windows import format_time

TODAY = 1_738_315_800 * 10**9


@pytest.mark.parametrize(
    ("text", "unit", "meant"),
    [
        ("1738315800", "seconds", TODAY),
        ("9999999999", "seconds", 9999999999 * 10**9),
        ("99999999999", "seconds", 99999999999 * 10**9),
        ("1738315800123", "milliseconds", TODAY + 123 * 10**6),
        ("100000000000", "milliseconds", 10**17),
    ],
)
def test_what_looks_like_another_unit_is_told(text: str, unit: str, meant: int) -> None:
    with pytest.raises(ValueError, match=f"looks like {unit}.* send {meant},.* {format_time(int(text))} is meant"):
        check_unit(text, TODAY)


def test_facts_that_are_as_early_are_selected() -> None:
    """The times of a trace may count from its start: an hour in nanoseconds has 13 digits."""
    check_unit("3600000000000", 0)
    check_unit("3600000000000", 3_600_000_000_000)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_other_integer_is_taken(nanoseconds: int) -> None:
    if not 10**9 <= nanoseconds < 10**13:
        check_unit(str(nanoseconds), TODAY)
    check_unit(format_time(nanoseconds), TODAY)
