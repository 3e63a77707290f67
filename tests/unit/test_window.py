from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.window import Window, first_records, windows_of

records = st.lists(st.binary(max_size=5).map(lambda record: record.replace(b"\n", b"").rstrip(b"\r")), max_size=20)


@given(records=records, window_bytes=st.integers(1, 12))
def test_records_come_back_with_their_numbers(records: list[bytes], window_bytes: int) -> None:
    numbered = list(enumerate(records, 5))
    windows = list(windows_of(numbered, window_bytes))
    assert [record for window in windows for record in window.records()] == numbered
    assert all(len(window.text) < window_bytes + 5 + len(window.numbers) for window in windows)


def test_line_ends_are_no_part_of_a_record() -> None:
    assert list(Window(b"one\r\n\r\ntwo\n", [1, 2, 3]).records()) == [(1, b"one"), (2, b""), (3, b"two")]
    assert list(Window(b"one\ntwo\n", [9, 8]).records()) == [(9, b"one"), (8, b"two")]
    (window,) = windows_of([(1, b"one\r\n"), (2, b"two\n")])
    assert window == Window(b"one\ntwo\n", [1, 2])


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_the_first_records_are_those_without_blank_ones(count: int) -> None:
    windows = [Window(b"a\n\nb\n", range(1, 4)), Window(b" \r\nc\nd\n", range(4, 7))]
    found = [record for window in first_records(windows, count) for record in window.records()]
    assert found == [(1, b"a"), (3, b"b"), (5, b"c"), (6, b"d")][:count]
