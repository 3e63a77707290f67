"""Registrations among requests: each applies from its record on, whatever the batches, snapshots and restarts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litehit.registry import Registry
from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER, Reason
from service.errors import CoreChanged, TooManyDeadLetters
from service.lanes.counts import Ignored
from service.lanes.lane import Lane, LaneOutput
from service.lanes.poison_limit import PoisonLimits
from service.lanes.restore import RestorePlan
from service.lanes.restorer import Restored
from service.lanes.seat import Seat
from service.lanes.snapshot import Snapshot, decode, encode
from service.records import SourceRecord
from tests import lanes_harness as harness
from tests import snapshots_made as made
from tests.reference import ReferenceStack
from tests.registration_events import ENCODINGS, Encode, in_json

FILE = """
groups: [{name: g, capacity_gb: [0.0000001]}]
instances: [{instance_id: "chat-*", group: g, block_size_tokens: 4, trace_block_size_tokens: 2, block_bytes: 10}]
"""
CORE = ("block_size_tokens", "trace_block_size_tokens", "ttl_seconds")
DEFAULTS = {
    "chat": {"block_size_tokens": 4, "trace_block_size_tokens": 2, "ttl_seconds": 0, "block_bytes": 10},
    "new": {"ttl_seconds": 0},
}

Event = tuple[str, dict[str, Any]]


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    instance = st.sampled_from(["chat-a", "chat-b", "new"])
    register = st.fixed_dictionaries(
        {},
        optional={
            "block_size_tokens": st.sampled_from([2, 4]),
            "ttl_seconds": st.sampled_from([0, 3]),
            "block_bytes": st.sampled_from([7, 10, 30]),
            "capacity_gb": st.sampled_from([[], [0.00000005, -1]]),
            "reset": st.just(True),
        },
    ).filter(bool)
    with_trace = register.map(
        lambda fields: fields | {"trace_block_size_tokens": 2} if "block_size_tokens" in fields else fields
    )
    request = st.lists(st.integers(1, 4), max_size=6).map(lambda keys: {"keys": keys})
    listed: list[Event] = draw(st.lists(st.tuples(instance, request | with_trace | register), max_size=40))
    return listed


@dataclass
class Reference:
    """One event after the other, by lists and dictionaries."""

    stated: dict[str, dict[str, Any]] = field(default_factory=dict)
    stacks: dict[str, ReferenceStack] = field(default_factory=dict)
    facts: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[int, Reason] = field(default_factory=dict)

    def config(self, instance_id: str, stated: dict[str, Any]) -> dict[str, Any] | None:
        config = DEFAULTS[instance_id.partition("-")[0]] | stated
        return config if {"block_size_tokens", "block_bytes"} <= config.keys() else None

    def take(self, offset: int, instance_id: str, fields: dict[str, Any]) -> None:
        if "keys" in fields:
            self.request(offset, instance_id, fields["keys"])
            return
        reset, fields = fields.get("reset", False), {name: fields[name] for name in fields if name != "reset"}
        if "block_size_tokens" in fields:
            fields = {"trace_block_size_tokens": fields["block_size_tokens"]} | fields
        stated = self.stated.get(instance_id, {})
        before, after = self.config(instance_id, stated), self.config(instance_id, stated | fields)
        if after is None:
            self.refused[offset] = Reason.REGISTRATION_REFUSED
            return
        is_other = before is not None and any(before[name] != after[name] for name in CORE)
        if is_other and instance_id in self.stacks and not reset:
            self.refused[offset] = Reason.REGISTRATION_NEEDS_RESET
            return
        if reset:
            self.stacks.pop(instance_id, None)
        self.stated[instance_id] = stated | fields

    def request(self, offset: int, instance_id: str, keys: list[int]) -> None:
        config = self.config(instance_id, self.stated.get(instance_id, {}))
        if config is None:
            self.refused[offset] = Reason.UNKNOWN_INSTANCE
            return
        of_trace = config["trace_block_size_tokens"]
        if length(keys) // of_trace != len(keys):
            self.refused[offset] = Reason.LENGTH_MISMATCH
            return
        stack = self.stacks.setdefault(instance_id, ReferenceStack(config["ttl_seconds"]))
        size = config["block_size_tokens"]
        curve = stack.process_request(keys[size // of_trace - 1 :: size // of_trace], now=offset)
        self.facts.append(
            {
                "trace_id": str(offset),
                "instance_id": instance_id,
                "timestamp_ns": offset * 10**9,
                "input_token_len": length(keys),
                "block_size_tokens": size,
                "block_bytes": config["block_bytes"],
                "hit_curve": [list(segment) for segment in curve],
            }
        )


def length(keys: list[int]) -> int:
    return 2 * len(keys) + 1


def source(offset: int, value: bytes, headers: Any = ()) -> SourceRecord:
    return SourceRecord("requests", 3, offset, b"key", value, 1_700_000_000_000, headers)


def read(offset: int, instance_id: str, fields: dict[str, Any], encode: Encode = in_json) -> SourceRecord:
    if "keys" not in fields:
        return source(offset, *encode(instance_id, **fields))
    event = {
        "type": "request",
        "trace_id": str(offset),
        "instance_id": instance_id,
        "timestamp_ns": offset * 10**9,
        "input_token_len": length(fields["keys"]),
    }
    return source(offset, json.dumps(event | fields).encode())


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return registry(tmp_path_factory.mktemp("registry"), FILE)


def registry(folder: Path, text: str) -> Registry:
    path = folder / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return Registry.load(path)


def through_a_file(lane: Lane) -> Snapshot:
    snapshot = made.snapshot_of(lane)
    return decode(snapshot.path, bytes(encode(snapshot)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stream=events(),
    cuts=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["batch", "snapshot", "crash"])), max_size=6).map(
        sorted
    ),
)
def test_any_interleaving_cut_anyhow_equals_the_reference(
    known: Registry, stream: list[Event], cuts: list[tuple[int, str]]
) -> None:
    reference = Reference()
    for offset, (instance_id, fields) in enumerate(stream):
        reference.take(offset, instance_id, fields)
    encodings = [ENCODINGS[offset % 2] for offset in range(len(stream))]
    records = [read(offset, *event, encodings[offset]) for offset, event in enumerate(stream)]

    lane, kept, first = made.new_lane(known), None, 0
    outputs: list[LaneOutput] = []
    for cut, action in [*((min(cut, len(records)), action) for cut, action in cuts), (len(records), "batch")]:
        outputs.append(lane.process(harness.read(records[first:cut])))
        first = cut
        if action == "snapshot":
            kept = through_a_file(lane)
        elif action == "crash":  # what was committed since the snapshot is replayed
            lane = made.new_lane(known, kept)
            lane.replay(harness.read(records[lane.next_offset : cut]))
            lane.go_live()

    facts = [json.loads(fact.value or b"") for output in outputs for fact in output.facts]
    assert facts == reference.facts
    letters = {
        int((dict(letter.headers)[SOURCE_HEADER] or b"").rpartition(b"/")[2]): Reason(
            (dict(letter.headers)[REASON_HEADER] or b"").decode()
        )
        for output in outputs
        for letter in output.dead_letters
    }
    assert letters == reference.refused
    registered = sum("keys" not in fields for _, fields in stream)
    refused = sum("keys" not in stream[offset][1] for offset in reference.refused)
    assert sum(output.counts.ignored.get(Ignored.REGISTRATION, 0) for output in outputs) == registered - refused

    straight = made.new_lane(known)
    straight.process(harness.read(records))
    assert made.same(made.snapshot_of(lane), made.snapshot_of(straight))
    assert [one.totals for one in lane.instances()] == [one.totals for one in straight.instances()]
    # Counters by charge are the facts' sums.
    counted = Counter((fact["instance_id"], fact["block_size_tokens"], fact["block_bytes"]) for fact in facts)
    kept_sums = {
        (one.config.instance_id, charge.block_size_tokens, charge.block_bytes): sums.requests
        for one in made.snapshot_of(lane).instances
        for charge, sums in one.sums.items()
    }
    assert kept_sums == counted


@pytest.mark.parametrize("encode_event", ENCODINGS)
def test_a_charge_applies_from_its_record_on_within_a_batch(known: Registry, encode_event: Encode) -> None:
    lane = made.new_lane(known)
    keys = {"keys": [1, 2]}
    output = lane.process(
        harness.read(
            [
                read(0, "chat-a", keys),
                read(1, "chat-b", keys),
                read(2, "chat-a", {"block_bytes": 77}, encode_event),
                read(3, "chat-b", keys),
                read(4, "chat-a", keys),
            ]
        )
    )
    facts = [json.loads(fact.value or b"") for fact in output.facts]
    assert [fact["block_bytes"] for fact in facts] == [10, 10, 10, 77]
    assert facts[3]["hit_curve"] == [[1, 1]]
    assert (output.counts.consumed, output.counts.facts) == (5, 4)
    assert output.counts.ignored == {Ignored.REGISTRATION: 1}


def test_a_change_of_the_core_says_what_to_send(known: Registry) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1, 2]})]))
    (letter,) = lane.process(harness.read([read(1, "chat-a", {"ttl_seconds": 1.5})])).dead_letters
    headers = dict(letter.headers)
    assert headers[REASON_HEADER] == b"registration-needs-reset"
    sentence = (headers[ERROR_HEADER] or b"").decode()
    assert "chat-a has ttl_seconds 0 there and 1.5 now" in sentence
    assert "send reset: true" in sentence
    output = lane.process(
        harness.read([read(2, "chat-a", {"ttl_seconds": 1.5, "reset": True}), read(3, "chat-a", {"keys": [1, 2]})])
    )
    assert json.loads(output.facts[0].value or b"")["hit_curve"] == []


def test_slots_that_are_registered_later_are_counted_over_all_facts(known: Registry) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(offset, "chat-a", {"keys": [1, 2, 3, 4]}) for offset in range(3)]))
    lane.process(harness.read([read(3, "chat-a", {"capacity_gb": [-1, 0]})]))
    (status,) = lane.instances()
    assert status.config.capacity_gb == (-1.0, 0.0)
    assert status.totals.requests == 3
    assert status.totals.hit_blocks == [4, 0]


def test_refused_registrations_count_against_the_limit(known: Registry) -> None:
    lane = Lane(3, known, made.TARGETS, PoisonLimits(consecutive=2, share=1.0, window=100))
    lane.process(harness.read([read(offset, "new", {"ttl_seconds": 1}) for offset in range(2)]))
    with pytest.raises(TooManyDeadLetters, match=r"requests/3/2: .*must state block_size_tokens and block_bytes"):
        lane.process(harness.read([read(2, "new", {"ttl_seconds": 1})]))


def test_a_changed_file_applies_to_what_the_stream_left_out(known: Registry, tmp_path: Path) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1]}), read(1, "chat-a", {"block_bytes": 77})]))
    changed = registry(tmp_path, FILE.replace("block_bytes: 10", "block_bytes: 20").replace("[0.0000001]", "[3]"))
    again = made.new_lane(changed, through_a_file(lane))
    again.go_live()
    again.process(harness.read([read(2, "chat-b", {"keys": [1]})]))
    configs = {one.config.instance_id: one.config for one in again.instances()}
    assert (configs["chat-a"].block_bytes, configs["chat-a"].capacity_gb) == (77, (3.0,))
    assert configs["chat-b"].block_bytes == 20


def test_an_instance_of_the_stream_alone_outlives_the_file(known: Registry, tmp_path: Path) -> None:
    lane = made.new_lane(known)
    lane.process(
        harness.read([read(0, "new", {"block_size_tokens": 2, "block_bytes": 5}), read(1, "new", {"keys": [1]})])
    )
    other = registry(tmp_path, FILE.replace("chat-*", "talk-*"))
    again = made.new_lane(other, through_a_file(lane))
    (fact,) = again.process(harness.read([read(2, "new", {"keys": [1]})])).facts
    assert json.loads(fact.value or b"")["hit_curve"] == [[1, 1]]


def test_an_instance_the_file_forgot_comes_back_by_a_registration_with_its_cache(
    known: Registry, tmp_path: Path
) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1, 2]})]))
    forgetful = made.new_lane(registry(tmp_path, FILE.replace("chat-*", "talk-*")), through_a_file(lane))
    output = forgetful.process(
        harness.read(
            [
                read(1, "chat-a", {"block_size_tokens": 2, "block_bytes": 5}),
                read(2, "chat-a", {"block_size_tokens": 4, "trace_block_size_tokens": 2, "block_bytes": 5}),
                read(3, "chat-a", {"keys": [1, 2]}),
            ]
        )
    )
    assert output.counts.dead_letters == {Reason.REGISTRATION_NEEDS_RESET: 1}
    assert json.loads(output.facts[0].value or b"")["hit_curve"] == [[1, 1]]


def test_a_refused_registration_does_not_bring_a_forgotten_instance_back(known: Registry, tmp_path: Path) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1, 2]})]))
    forgetful = made.new_lane(registry(tmp_path, FILE.replace("chat-*", "talk-*")), through_a_file(lane))
    output = forgetful.process(
        harness.read(
            [read(1, "chat-a", {"block_size_tokens": 2, "block_bytes": 5}), read(2, "chat-a", {"keys": [1, 2]})]
        )
    )
    assert output.counts.dead_letters == {Reason.REGISTRATION_NEEDS_RESET: 1, Reason.UNKNOWN_INSTANCE: 1}
    again = made.new_lane(known, through_a_file(forgetful))
    assert [one.unique_blocks for one in again.instances()] == [1]


OTHER_CORE = FILE.replace("block_size_tokens: 4, trace_block_size_tokens: 2", "block_size_tokens: 2")


def test_a_file_whose_core_the_replayed_registrations_do_not_give_is_refused(known: Registry, tmp_path: Path) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1, 2]})]))
    snapshot = through_a_file(lane)
    to_it = read(1, "chat-a", {"block_size_tokens": 2, "reset": True})
    changed = registry(tmp_path, OTHER_CORE)
    seat = Seat(3)
    seat.begin(Restored(made.new_lane(changed, snapshot), RestorePlan(1, 2), snapshot, 0))
    with pytest.raises(CoreChanged, match="chat-a has block_size_tokens 4 there and 2 now"):
        seat.process(harness.read([read(1, "chat-b", {"block_bytes": 9}), read(2, "chat-a", {"keys": [1]})]))
    seat.begin(Restored(made.new_lane(changed, snapshot), RestorePlan(1, 2), snapshot, 0))
    output = seat.process(harness.read([to_it, read(2, "chat-a", {"keys": [1]})]))
    assert output is not None
    assert json.loads(output.facts[0].value or b"")["block_size_tokens"] == 2


def test_what_a_replayed_registration_left_out_is_counted_as_it_was(known: Registry, tmp_path: Path) -> None:
    lane = made.new_lane(known)
    lane.process(harness.read([read(0, "chat-a", {"keys": [1, 2]})]))
    snapshot = through_a_file(lane)
    rest = [read(1, "chat-a", {"capacity_gb": [-1]}), read(2, "chat-a", {"keys": [1, 2]})]
    changed = registry(tmp_path, FILE.replace("block_bytes: 10", "block_bytes: 20"))
    again = made.new_lane(changed, snapshot)
    again.replay(harness.read(rest))
    again.go_live()
    again.process(harness.read([read(3, "chat-a", {"keys": [1, 2]})]))
    (kept,) = made.snapshot_of(again).instances
    assert {charge.block_bytes: sums.requests for charge, sums in kept.sums.items()} == {10: 2, 20: 1}
