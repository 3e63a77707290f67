"""The position of a replay: each dead letter at most once, whatever reasons are asked for in whatever order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.dead_letter import Reason
from service.dead_letter_replay import ReplayPosition

RUNS = st.lists(st.tuples(st.sets(st.sampled_from(Reason), min_size=1), st.integers(0, 50)), max_size=8)


@given(RUNS)
def test_each_reason_goes_its_own_way_and_survives_the_commit(runs: list[tuple[set[Reason], int]]) -> None:
    position = ReplayPosition.read(-1001, None)
    places = dict.fromkeys(Reason, 0)
    for reasons, offset in runs:
        position = position.moved(reasons, offset)
        for reason in reasons:
            places[reason] = max(places[reason], offset)
        committed = position.committed()
        assert len(committed.metadata) < 4096  # what Kafka takes
        position = ReplayPosition.read(committed.offset, committed.metadata)
        assert {reason: position.of(reason) for reason in Reason} == places
        assert position.offset == min(places.values())


def test_all_reasons_leave_nothing_to_say_beside_the_offset() -> None:
    position = ReplayPosition(3, {Reason.KEY_TYPE: 9}).moved(set(Reason), 12)
    assert (position.committed().offset, position.committed().metadata) == (12, "")


@given(RUNS)
def test_the_farthest_reason_says_what_the_topic_must_hold(runs: list[tuple[set[Reason], int]]) -> None:
    position = ReplayPosition.read(-1001, None)
    for reasons, offset in runs:
        position = position.moved(reasons, offset)
    assert position.farthest == max([0, *(offset for _, offset in runs)])
