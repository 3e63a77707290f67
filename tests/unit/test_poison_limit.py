"""Dead letters in a row and in a window, counted record by record against a slow count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.registry import Registry
from schemas.dead_letter import Reason
from service.errors import TooManyDeadLetters
from service.lanes.lane import Lane, LaneTargets
from service.lanes.poison_limit import NO_LIMITS, PoisonLimits, PoisonWatch
from service.lanes.restore import RestorePlan
from service.lanes.restorer import Restored
from service.lanes.seat import Seat
from service.lanes.status import LaneState
from service.records import SourceRecord
from service.settings import Settings
from tests import lanes_harness as harness

GOOD = harness.event(harness.make_requests(1, seed=1)[0])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


def lane(known: Registry, limits: PoisonLimits) -> Lane:
    return Lane(0, known, LaneTargets("facts", "dead", 10_000), limits)


def records(outcomes: str, first: int = 0) -> list[SourceRecord]:
    """`x` is a bad record, anything else a good one."""
    return [
        SourceRecord("requests", 0, offset, None, b"{" if outcome == "x" else GOOD, 1)
        for offset, outcome in enumerate(outcomes, first)
    ]


@given(
    st.lists(st.booleans(), max_size=60),
    st.integers(0, 5),
    st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0]),
    st.integers(1, 12),
)
def test_each_record_is_judged_as_a_slow_count_judges_it(
    outcomes: list[bool], consecutive: int, share: float, window: int
) -> None:
    watch = PoisonWatch(PoisonLimits(consecutive, share, window))
    for position, dead in enumerate(outcomes, 1):
        seen = outcomes[:position]
        in_a_row = position - max((place for place, one in enumerate(seen, 1) if not one), default=0)
        last = seen[-window:]
        too_many = (consecutive > 0 and in_a_row > consecutive) or (len(last) == window and sum(last) > share * window)
        if dead:
            assert (watch.died() is not None) == too_many
        else:
            watch.passed(1)


@given(st.lists(st.one_of(st.just(None), st.integers(0, 30)), max_size=30), st.integers(1, 12))
def test_requests_that_pass_are_counted_at_once_as_one_by_one(runs: list[int | None], window: int) -> None:
    """None is a dead letter, a number so many requests that are none."""
    limits = PoisonLimits(consecutive=2, share=0.5, window=window)
    at_once, one_by_one = PoisonWatch(limits), PoisonWatch(limits)
    for run in runs:
        if run is None:
            assert at_once.died() == one_by_one.died()
            continue
        at_once.passed(run)
        for _ in range(run):
            one_by_one.passed(1)


def test_the_lane_stops_at_the_record_that_is_one_too_many(known: Registry) -> None:
    limits = PoisonLimits(consecutive=3, share=1.0, window=1)
    assert lane(known, limits).process(harness.read(records("xxx.xxx."))).counts.dead_letters == {
        Reason.MALFORMED_JSON: 6
    }
    with pytest.raises(TooManyDeadLetters, match="requests/0/7: 4 dead letters in a row") as caught:
        lane(known, limits).process(harness.read(records("..x.xxxx.")))
    assert "LITEHIT_DEAD_LETTER_MAX_CONSECUTIVE" in str(caught.value)
    assert "is not valid JSON" in str(caught.value)


def test_a_run_goes_on_over_batches_and_a_restore_which_is_not_judged_itself(known: Registry) -> None:
    limits = PoisonLimits(consecutive=3, share=1.0, window=1)
    restored = lane(known, limits)
    restored.replay(harness.read(records("..xxxxx")))
    with pytest.raises(TooManyDeadLetters, match="6 dead letters in a row"):
        restored.process(harness.read(records("x", first=7)))
    restored = lane(known, limits)
    restored.replay(harness.read(records("..xx")))
    restored.process(harness.read(records("x.xx", first=4)))
    with pytest.raises(TooManyDeadLetters, match="requests/0/9: 4 dead letters in a row"):
        restored.process(harness.read(records("xx", first=8)))


def seat_with(known: Registry, limits: PoisonLimits, target: int) -> Seat:
    """Of a lane that replays what lies before the target."""
    seat = Seat(0)
    seat.begin(Restored(lane(known, limits), RestorePlan(0, target), None, 0))
    return seat


@pytest.mark.parametrize("batch", [1, 3, 9])
def test_dead_letters_that_are_replayed_do_not_stop_a_lane_again(known: Registry, batch: int) -> None:
    """An operator had raised the limit, and has put it back: what it let through is behind the committed offset."""
    seat = seat_with(known, PoisonLimits(consecutive=2, share=1.0, window=1), target=6)
    read = records(".xxxx....")
    outputs = [seat.process(harness.read(read[low : low + batch])) for low in range(0, len(read), batch)]
    given = [output for output in outputs if output is not None]
    assert sum(len(output.facts) for output in given) == 3
    assert sum(len(output.dead_letters) for output in given) == 0
    assert (seat.state, seat.next_offset) == (LaneState.RUNNING, 9)


def test_a_run_that_goes_on_behind_what_was_replayed_does(known: Registry) -> None:
    seat = seat_with(known, PoisonLimits(consecutive=2, share=1.0, window=1), target=3)
    with pytest.raises(TooManyDeadLetters, match=r"requests/0/3: 3 dead letters in a row"):
        seat.process(harness.read(records(".xxx.")))


def test_a_share_counts_once_the_window_is_full(known: Registry) -> None:
    limits = PoisonLimits(consecutive=0, share=0.5, window=6)
    assert lane(known, limits).process(harness.read(records("xxxxx....."))).counts.consumed == 10
    with pytest.raises(TooManyDeadLetters, match=r"requests/0/8: 4 dead letters among the last 6 requests, .* 0\.5 of"):
        lane(known, limits).process(harness.read(records("....x.xxx")))


def test_no_limits_take_everything(known: Registry) -> None:
    assert lane(known, NO_LIMITS).process(harness.read(records("x" * 2000))).counts.consumed == 2000


def test_limits_come_from_the_settings() -> None:
    assert PoisonLimits.of(Settings()) == PoisonLimits(1000, 0.5, 10_000)
