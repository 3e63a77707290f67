"""A lane that goes on from a snapshot gives the bytes, and counts the sums, of one that was never stopped."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litehit.registry import Registry
from service.lanes.lane import Lane
from service.lanes.restore import RestorePlan
from service.lanes.restorer import Restored
from service.lanes.seat import Phase, Seat
from service.lanes.snapshot import Snapshot, decode, encode
from service.lanes.status import LaneState
from service.records import OutputRecord
from tests import lanes_harness as harness
from tests import snapshots_made as made

RECORDS = made.records_of(harness.make_requests(200, seed=61))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


@pytest.fixture(scope="module")
def whole(known: Registry) -> tuple[OutputRecord, ...]:
    return made.new_lane(known).process(harness.read(RECORDS)).facts


def through_a_file(lane: Lane) -> Snapshot:
    snapshot = made.snapshot_of(lane)
    return decode(snapshot.path, bytes(encode(snapshot)))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 200), max_size=4).map(sorted))
def test_no_byte_and_no_sum_tells_where_it_was_stopped(
    known: Registry, whole: tuple[OutputRecord, ...], cuts: list[int]
) -> None:
    lane = made.new_lane(known)
    facts: list[OutputRecord] = []
    for low, high in zip([0, *cuts], [*cuts, 200], strict=True):
        facts += lane.process(harness.read(RECORDS[low:high])).facts
        snapshot = through_a_file(lane)
        assert snapshot.next_offset == high
        lane = made.new_lane(known, snapshot)
        assert lane.next_offset == high
    assert tuple(facts) == whole
    straight = made.new_lane(known)
    straight.process(harness.read(RECORDS))
    assert [one.totals for one in lane.instances()] == [one.totals for one in straight.instances()]
    assert made.same(made.snapshot_of(lane), made.snapshot_of(straight))


def test_a_frozen_lane_stays_as_it_was_while_the_lane_goes_on(known: Registry) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read(RECORDS[:100]))
    frozen = lane.freeze()
    before = made.snapshot_of(lane)
    lane.process(harness.read(RECORDS[100:]))
    assert made.same(frozen.snapshot(made.TOPIC), before)


def other_registry(folder: Path, text: str) -> Registry:
    path = folder / "other.yaml"
    path.write_text(text, encoding="utf-8")
    return Registry.load(path)


def test_an_instance_that_is_registered_no_more_is_kept_for_when_it_is(
    known: Registry, whole: tuple[OutputRecord, ...], tmp_path: Path
) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read(RECORDS[:120]))
    text = "\n".join(line for line in harness.REGISTRY.splitlines() if "chat-*" not in line)
    forgetful = made.new_lane(other_registry(tmp_path, text), through_a_file(lane))
    output = forgetful.process(harness.read(RECORDS[120:150]))
    assert {fact.key for fact in output.facts} == {b"agent-a", b"agent-b"}
    assert {one.config.instance_id for one in forgetful.instances()} == {"agent-a", "agent-b"}
    again = made.new_lane(known, through_a_file(forgetful))
    assert [one.config.instance_id for one in again.instances()] == sorted(harness.INSTANCES)
    agents = [
        fact for fact in again.process(harness.read(RECORDS[150:])).facts if (fact.key or b"").startswith(b"agent")
    ]
    assert agents == [fact for fact in whole[150:] if (fact.key or b"").startswith(b"agent")]


RECHARGED = harness.REGISTRY.replace("1024", "512").replace("2048", "4096").replace("[1]", "[0.00001]")


@pytest.mark.parametrize("batch", [7, 200])
def test_what_is_replayed_is_charged_as_it_was_and_new_facts_as_the_registry_says(
    known: Registry, tmp_path: Path, batch: int
) -> None:
    """Also after an abort, which replays on both sides of where the registry changed."""
    lane = made.new_lane(known)
    lane.process(harness.read(RECORDS[:50]))
    snapshot = through_a_file(lane)
    lane.process(harness.read(RECORDS[50:100]))
    changed = other_registry(tmp_path, RECHARGED)
    seat = Seat(3)
    for target, end in ((100, 150), (130, 200)):
        seat.begin(Restored(made.new_lane(changed, snapshot), RestorePlan(50, target), snapshot, 0))
        replayed = 0
        for low in range(50, end, batch):
            output = seat.process(harness.read(RECORDS[low : min(low + batch, end)]))
            replayed += 0 if output is None else len(output.facts)
        assert replayed == end - target
        seat.wait()
    assert seat.phase is Phase.WAITING
    seat.begin(Restored(made.new_lane(changed, snapshot), RestorePlan(50, 200), snapshot, 0))
    seat.process(harness.read(RECORDS[50:]))
    status = seat.status(None)
    assert (status.state, status.replayed, status.restored_from) == (LaneState.RUNNING, 150, 50)
    # The facts as they were committed: below 100 under the old registry, from there on under the new one.
    straight = made.new_lane(known)
    straight.process(harness.read(RECORDS[:100]))
    reference = made.new_lane(changed, made.snapshot_of(straight))
    reference.go_live()
    reference.process(harness.read(RECORDS[100:]))
    assert [one.totals for one in status.instances] == [one.totals for one in reference.instances()]
    assert {one.config.block_bytes for one in status.instances} == {512, 4096}
    assert sum(one.totals.requests for one in status.instances) == 200


def test_a_gap_before_the_target_does_not_keep_a_seat_from_going_live(known: Registry, tmp_path: Path) -> None:
    """The offset between, such as a marker's, has no record."""
    lane = made.new_lane(known)
    lane.process(harness.read(RECORDS[:50]))
    snapshot = through_a_file(lane)
    changed = other_registry(tmp_path, RECHARGED)
    seat = Seat(3)
    seat.begin(Restored(made.new_lane(changed, snapshot), RestorePlan(50, 60), snapshot, 0))
    seat.process(harness.read(RECORDS[50:55]))
    assert seat.state is LaneState.RESTORING
    output = seat.process(harness.read(RECORDS[61:70]))
    assert output is not None
    assert all(
        b'"block_bytes":512' in (fact.value or b"") or b'"block_bytes":4096' in (fact.value or b"")
        for fact in output.facts
    )


def test_a_seat_that_was_refused_shows_so_until_it_begins(known: Registry) -> None:
    seat = Seat(3)
    assert seat.ready_since() <= time.monotonic()
    seat.stop("expired", may_try_again=True)
    assert time.monotonic() < seat.ready_since() < time.monotonic() + 60
    seat.restore()
    assert (seat.state, seat.status(None).error) == (LaneState.STOPPED, "expired")
    seat.begin(Restored(made.new_lane(known), RestorePlan(0, 0), None, 0))
    assert (seat.state, seat.status(None).error) == (LaneState.RUNNING, None)
    seat.stop("a fault")
    assert seat.ready_since() == math.inf
