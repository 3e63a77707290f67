from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.globs import covers

GLOBS = st.text("ab*?", max_size=6)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [("*", "qwen*"), ("qwen3?*", "qwen3-*"), ("a**", "a*"), ("a*", "a**"), ("*b*", "a?b[xy]*"), ("[ab]", "[ab]")],
)
def test_it_covers(wide: str, narrow: str) -> None:
    assert covers(wide, narrow)


@pytest.mark.parametrize(
    ("wide", "narrow"), [("qwen*", "*"), ("qwen3-*", "qwen3?*"), ("a?", "a*"), ("a?*", "a*"), ("", "a"), ("[ab]", "?")]
)
def test_it_does_not(wide: str, narrow: str) -> None:
    assert not covers(wide, narrow)


@given(GLOBS, GLOBS, st.lists(st.text("abc", max_size=6), max_size=30))
def test_what_is_covered_is_matched(wide: str, narrow: str, names: list[str]) -> None:
    if covers(wide, narrow):
        assert all(fnmatch.fnmatchcase(name, wide) for name in names if fnmatch.fnmatchcase(name, narrow))
