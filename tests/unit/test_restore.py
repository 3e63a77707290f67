"""A lane goes on from a usable snapshot or the start of its log, or not at all; the messages say what to choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from litehit.registry import InstanceConfig, Registry
from service.errors import CannotRestore
from service.lanes.committed import Committed, Position, RequestsTopic
from service.lanes.restore import (
    RestorePlan,
    Standing,
    check_committed,
    check_configuration,
    is_usable,
    plan_restore,
    reset_applies,
)
from service.lanes.snapshot import InstanceSnapshot, Reset, Snapshot

TOPIC = RequestsTopic("requests", "now", 4)


def committed(offset: int | None, generation: str = "now", partitions: int = 4, history: int = 0) -> Committed:
    return Committed(None) if offset is None else Committed(offset, generation, partitions, history)


def snapshot(
    next_offset: int,
    history: int = 0,
    reset: Reset | None = None,
    topic: RequestsTopic = TOPIC,
    *configs: InstanceConfig,
) -> Snapshot:
    return Snapshot(topic, 0, next_offset, history, reset, 0.0, [InstanceSnapshot(one, {}, {}) for one in configs])


def plan(at: Committed, low: int, end: int, kept: Snapshot | None = None) -> RestorePlan:
    standing = Standing(at, low, end)
    check_committed(TOPIC, 0, standing)
    return plan_restore(TOPIC, 0, standing, kept)


def test_what_a_lane_commits_is_read_back() -> None:
    position = Position.of(7, TOPIC, 2)
    assert position.metadata == "now:4:2"
    assert Committed.read(position.offset, position.metadata) == Committed(7, "now", 4, 2)
    assert Committed.read(-1001, None) == Committed(None)


@pytest.mark.parametrize("metadata", [None, "", "made by a tool", "now:4", "now:4:x", "a:b:c:d"])
def test_metadata_of_other_makes_says_nothing(metadata: str | None) -> None:
    assert Committed.read(7, metadata) == Committed(7)


def test_a_fresh_group_starts_at_the_start_and_suppresses_nothing() -> None:
    assert plan(committed(None), 0, 500) == RestorePlan(start=0, target=0)


def test_without_a_snapshot_the_log_is_replayed_from_its_start() -> None:
    assert plan(committed(300), 0, 500) == RestorePlan(start=0, target=300)
    assert plan(committed(500), 0, 500) == RestorePlan(start=0, target=500)
    assert plan(Committed(300), 0, 500) == RestorePlan(start=0, target=300)


@pytest.mark.parametrize("low", [0, 20, 250])
def test_from_a_snapshot_only_what_came_after_it_is_replayed(low: int) -> None:
    assert plan(committed(300), low, 500, snapshot(250)) == RestorePlan(start=250, target=300)
    assert plan(committed(300), low, 500, snapshot(300)) == RestorePlan(start=300, target=300)


@pytest.mark.parametrize("offset", [None, 300])
def test_expired_requests_stop_the_lane_instead_of_starting_it_cold(offset: int | None) -> None:
    with pytest.raises(CannotRestore) as caught:
        plan(committed(offset), 20, 500)
    assert str(caught.value).startswith("requests/0: the requests before offset 20 have expired and there is no usable")
    assert "would start cold" in str(caught.value)
    assert "litehit lanes reset --partition 0 --to cold|earliest|snapshot" in str(caught.value)


def test_requests_that_expired_behind_the_snapshot_stop_the_lane() -> None:
    with pytest.raises(
        CannotRestore, match=r"before offset 251 have expired and the newest usable snapshot ends at 25"
    ):
        plan(committed(300), 251, 500, snapshot(250))


def test_requests_that_expired_unread_stop_the_lane() -> None:
    with pytest.raises(CannotRestore, match="before offset 310 have expired"):
        plan(committed(300), 310, 500, snapshot(300))


def test_caches_that_go_back_to_a_reset_are_not_rebuilt_from_the_start() -> None:
    with pytest.raises(CannotRestore, match=r"go back to a reset \(history 2\)"):
        plan(committed(300, history=2), 0, 500)


def test_an_offset_beyond_the_log_is_of_another_topic() -> None:
    with pytest.raises(CannotRestore, match=r"offset 501 lies beyond the end of the log, 500.*--to cold\|earliest"):
        plan(committed(501), 0, 500)


def test_an_offset_of_another_generation_is_never_used() -> None:
    with pytest.raises(CannotRestore, match=r"generation before of the topic, which is now now.*--to earliest"):
        plan(committed(300, "before"), 0, 500)


def test_another_number_of_partitions_stops_the_lane() -> None:
    with pytest.raises(CannotRestore, match="the topic has 4 partitions, and had 3"):
        plan(committed(300, partitions=3), 0, 500)
    # Nor does a partition that was added start as if its instances had never been elsewhere.
    standing = Standing(committed(None), 0, 0, (committed(9, partitions=3), committed(None)))
    with pytest.raises(CannotRestore, match="the topic has 4 partitions, and had 3"):
        check_committed(TOPIC, 3, standing)
    with pytest.raises(CannotRestore, match="the topic has 4 partitions, and had 3"):
        plan(Committed(300), 0, 500, snapshot(250, topic=RequestsTopic("requests", "now", 3)))


@pytest.mark.parametrize(
    ("kept", "at", "usable"),
    [
        (snapshot(300), committed(300), True),
        (snapshot(301), committed(300), False),
        (snapshot(0), committed(None), True),
        (snapshot(1), committed(None), False),
        (snapshot(300, history=1), committed(300), False),
        (snapshot(300, history=1), committed(300, history=1), True),
        (snapshot(300, history=1), Committed(300), True),
    ],
)
def test_a_snapshot_is_usable_if_it_is_of_the_lanes_past(kept: Snapshot, at: Committed, usable: bool) -> None:
    assert is_usable(kept, at) is usable


@pytest.mark.parametrize(
    ("at", "applies"),
    [
        (committed(300), True),
        (committed(301), False),  # the lane went on meanwhile
        (committed(300, history=1), False),  # it was followed already
        (committed(None), False),
    ],
)
def test_a_reset_is_followed_once_and_only_from_where_it_was_chosen(at: Committed, applies: bool) -> None:
    assert reset_applies(snapshot(20, 1, Reset("group", 300)), at, "group") is applies
    assert not reset_applies(snapshot(20, 1, Reset("group", 300)), at, "another")
    assert not reset_applies(snapshot(20, 1), at, "group")


REGISTRY = """
groups: [{name: g, ttl_seconds: 5, capacity_gb: [1, 2]}]
instances: [{instance_id: a, group: g, block_size_tokens: 8, trace_block_size_tokens: 4, block_bytes: 10}]
"""


def test_a_core_of_another_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(REGISTRY, encoding="utf-8")
    known = Registry.load(path)
    same = known.resolve("a")
    free = InstanceConfig("a", "other", 8, 4, 99, False, same.ttl_ns, (7.0,))
    gone = InstanceConfig("unregistered", "g", 1, 1, 1, False, 0, ())
    check_configuration(TOPIC, 0, snapshot(5, 0, None, TOPIC, free, gone), known)
    other = InstanceConfig("a", "g", 16, 4, 10, True, 7, (1.0, 2.0))
    with pytest.raises(CannotRestore) as caught:
        check_configuration(TOPIC, 0, snapshot(5, 0, None, TOPIC, other), known)
    message = str(caught.value)
    assert "a has block_size_tokens 16 there and 8 now" in message
    assert "a has enable_prefix_hash True there and False now" in message
    assert "a has ttl_seconds 0.000000007 there and 5 now" in message
    assert "trace_block_size_tokens" not in message
    assert "litehit lanes reset --partition 0 --to cold|earliest" in message
