"""Records within the window come out in order of time; what is held back is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.reorder import TimeOrder


def time_of(line: bytes) -> int | None:
    return None if line == b"-" else int(line)


def ordered(lines: list[bytes], window: int, max_bytes: int = 1000) -> list[tuple[int, bytes]]:
    order = TimeOrder(time_of, window, max_bytes)
    numbered = list(enumerate(lines, 1))
    return [*order.add(numbered[:3]), *order.add(numbered[3:]), *order.rest()]


@given(jitter=st.lists(st.integers(0, 20), max_size=40))
def test_what_is_late_by_less_than_the_window_is_put_in_order(jitter: list[int]) -> None:
    lines = [b"%d" % (10 * place - late) for place, late in enumerate(jitter)]
    found = ordered(lines, window=20)
    assert found == sorted(enumerate(lines, 1), key=lambda numbered: (int(numbered[1]), numbered[0]))


def test_what_is_later_than_the_window_stays_late() -> None:
    assert [line for _, line in ordered([b"100", b"0", b"111", b"5"], window=10)] == [b"0", b"100", b"5", b"111"]


def test_records_of_one_time_stay_as_they_come() -> None:
    assert ordered([b"5", b"3", b"5", b"3"], window=9) == [(2, b"3"), (4, b"3"), (1, b"5"), (3, b"5")]


def test_what_has_no_time_goes_on_at_once() -> None:
    assert ordered([b"5", b"-", b"3"], window=9) == [(2, b"-"), (3, b"3"), (1, b"5")]


def test_no_more_bytes_are_held_than_allowed() -> None:
    assert [line for _, line in ordered([b"9", b"8", b"7", b"6"], window=99, max_bytes=2)] == [b"7", b"6", b"8", b"9"]
    assert [line for _, line in ordered([b"9", b"8"], window=99, max_bytes=0)] == [b"9", b"8"]
