"""What is a repeat, against a slow count; and that a copy goes on like the original."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from litehit.repeats import RecentByInstance, RecentTraces

IDS = st.lists(st.sampled_from(["", "a", "b", "c", "d", "é", "a" * 100]), max_size=60)


def slow(window: int, trace_ids: list[str]) -> list[bool]:
    recent: list[str] = []
    found = []
    for trace_id in trace_ids:
        found.append(trace_id != "" and trace_id in recent)
        if trace_id and not found[-1]:
            recent = [*recent, trace_id][-window:] if window else []
    return found


@given(window=st.integers(0, 5), trace_ids=IDS, stop=st.integers(0, 60))
def test_a_repeat_is_among_the_last_ones(window: int, trace_ids: list[str], stop: int) -> None:
    recent = RecentTraces(window)
    found = [recent.is_repeat(trace_id) for trace_id in trace_ids[:stop]]
    copy = RecentTraces(window, recent.digests())
    found += [copy.is_repeat(trace_id) for trace_id in trace_ids[stop:]]
    assert found == slow(window, trace_ids)


def test_another_window_keeps_the_newest() -> None:
    recent = RecentTraces(3)
    assert not any(recent.is_repeat(trace_id) for trace_id in "abc")
    for window, kept in ((0, ""), (2, "bc"), (9, "abc")):
        assert recent.resized(window).digests().nbytes == len(kept) * 16
        assert all(recent.resized(window).is_repeat(trace_id) for trace_id in kept)


def test_each_instance_has_its_own_and_an_unknown_one_has_none() -> None:
    recent = RecentByInstance(2)
    assert [recent.is_repeat(instance, "t") for instance in ("a", "b", "a", "b")] == [False, False, True, True]
    assert recent.digests("c").nbytes == 0
    other = RecentByInstance(2)
    other.restore("a", recent.digests("a"))
    assert (other.is_repeat("a", "t"), other.is_repeat("b", "t")) == (True, False)
    other.resize(0)
    assert (other.window, other.is_repeat("a", "t"), other.digests("a").nbytes) == (0, False, 0)


def test_memory_is_bounded_whatever_the_ids_are() -> None:
    recent = RecentTraces(10)
    for number in range(100):
        recent.is_repeat(f"{number}" * 1000)
    assert recent.digests().nbytes == 10 * 16
