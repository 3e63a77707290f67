"""A lane starts at the start of its log, or not at all."""

from __future__ import annotations

import pytest

from service.errors import CannotRestore
from service.lanes.restore import Committed, RestorePlan, plan_restore


def plan(offset: int | None, low: int, end: int, generation: str | None = "now") -> RestorePlan:
    return plan_restore("requests/0", "now", Committed(offset, generation), low, end)


def test_a_fresh_group_starts_at_the_start_and_suppresses_nothing() -> None:
    assert plan(None, 0, 500, None) == RestorePlan(start=0, target=0)


def test_a_restart_replays_from_the_start_to_the_committed_offset() -> None:
    assert plan(300, 0, 500) == RestorePlan(start=0, target=300)
    assert plan(500, 0, 500) == RestorePlan(start=0, target=500)


def test_an_offset_whose_commit_names_no_generation_is_taken() -> None:
    assert plan(300, 0, 500, None) == RestorePlan(start=0, target=300)


@pytest.mark.parametrize("committed", [None, 300])
def test_expired_requests_stop_the_lane_instead_of_starting_it_cold(committed: int | None) -> None:
    with pytest.raises(CannotRestore, match=r"requests/0: the requests before offset 20 have expired.*cold"):
        plan(committed, 20, 500)


def test_an_offset_beyond_the_log_is_of_another_topic() -> None:
    with pytest.raises(CannotRestore, match=r"offset 501 lies beyond the end of the log, 500.*LITEHIT_GROUP_ID"):
        plan(501, 0, 500)


def test_an_offset_of_another_generation_is_never_used() -> None:
    with pytest.raises(CannotRestore, match=r"generation before of the topic, which is now now.*LITEHIT_GROUP_ID"):
        plan(300, 0, 500, "before")
