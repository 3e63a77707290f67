"""A seat's restore: what it replays is what was committed already, so it is counted and neither given nor judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from litehit.registry import Registry
from service.errors import TooManyDeadLetters
from service.lanes.lane import Lane, LaneTargets
from service.lanes.poison_limit import PoisonLimits
from service.lanes.restore import RestorePlan
from service.lanes.restorer import Restored
from service.lanes.seat import Seat
from service.lanes.status import LaneState
from service.records import SourceRecord
from tests import lanes_harness as harness

REQUESTS = harness.make_requests(12, seed=5)
LIMITS = PoisonLimits(consecutive=2, share=1.0, window=1)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    folder: Path = tmp_path_factory.mktemp("registry")
    return harness.registry(folder)


def records(outcomes: str) -> list[SourceRecord]:
    """`x` is a bad record, anything else a good one."""
    return [
        SourceRecord("requests", 3, offset, None, b"{" if outcome == "x" else harness.event(request), 1)
        for offset, (outcome, request) in enumerate(zip(outcomes, REQUESTS, strict=False))
    ]


def begun(known: Registry, target: int) -> Seat:
    seat = Seat(3)
    lane = Lane(3, known, LaneTargets("facts", "dead", 10_000), LIMITS)
    seat.begin(Restored(lane, RestorePlan(0, target), None))
    return seat


@pytest.mark.parametrize("batch", [1, 3, 9])
def test_dead_letters_that_are_replayed_do_not_stop_a_lane_again(known: Registry, batch: int) -> None:
    """An operator had raised the limit, and has put it back: what it let through is behind the committed offset."""
    seat = begun(known, target=6)
    read = records(".xxxx....")
    outputs = [seat.process(harness.read(read[low : low + batch])) for low in range(0, len(read), batch)]
    given = [output for output in outputs if output is not None]
    assert sum(len(output.facts) for output in given) == 3
    assert sum(len(output.dead_letters) for output in given) == 0
    assert (seat.state, seat.next_offset) == (LaneState.RUNNING, 9)


def test_a_run_that_goes_on_behind_what_was_replayed_does(known: Registry) -> None:
    seat = begun(known, target=3)
    with pytest.raises(TooManyDeadLetters, match=r"requests/3/3: 3 dead letters in a row"):
        seat.process(harness.read(records(".xxx.")))
