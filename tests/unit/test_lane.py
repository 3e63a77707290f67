"""A lane turns records into facts and dead letters, in order, losing none, however they are cut into batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litehit.instance import InstanceEngine
from litehit.registry import Registry
from litehit.request import Request
from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER, Reason
from service.lanes.counts import Ignored
from service.lanes.lane import Lane, LaneOutput, LaneTargets
from service.records import SourceRecord
from tests import lanes_harness as harness

TARGETS = LaneTargets("facts", "dead", 1_000_000)
KNOWN = "chat-a"
GOOD = Request(KNOWN, "t", 5, np.array([1, 2], np.int64), 9)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


@pytest.fixture
def lane(known: Registry) -> Lane:
    return new_lane(known)


def new_lane(known: Registry) -> Lane:
    return Lane(3, known, TARGETS)


def record(*args: Any, **options: Any) -> SourceRecord:
    return source(*args, **options)


def source(
    offset: int,
    value: bytes | None,
    key: bytes | None = b"key",
    timestamp_ms: int | None = 1_700_000_000_000,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> SourceRecord:
    return SourceRecord("requests", 3, offset, key, value, timestamp_ms, headers)


def records_of(requests: Sequence[Request]) -> list[SourceRecord]:
    return [record(offset, harness.event(request)) for offset, request in enumerate(requests)]


def test_facts_stand_in_offset_order_and_equal_a_straight_replay(lane: Lane, known: Registry) -> None:
    requests = harness.make_requests(300, seed=1)
    output = lane.process(harness.read(records_of(requests)))
    assert [dict(fact.headers)[SOURCE_HEADER] for fact in output.facts] == [
        f"requests/3/{offset}".encode() for offset in range(300)
    ]
    for instance_id, facts in harness.straight_facts(requests, known).items():
        assert [fact.value for fact in output.facts if fact.key == instance_id.encode()] == facts
    assert output.counts.facts == output.counts.consumed == 300
    assert {(fact.topic, fact.partition, fact.timestamp_ms) for fact in output.facts} == {
        ("facts", 3, 1_700_000_000_000)
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 199), unique=True).map(sorted), restored=st.integers(0, 200))
def test_batches_and_a_restore_change_no_byte(known: Registry, cuts: list[int], restored: int) -> None:
    records = records_of(harness.make_requests(200, seed=2))
    records[70] = record(70, b"{")
    records[71] = record(71, b'{"type":"write"}')
    whole = new_lane(known).process(harness.read(records))
    again = new_lane(known)
    parts: list[LaneOutput] = []
    for low, high in zip([0, *cuts], [*cuts, 200], strict=True):
        batch = records[low:high]
        replayed = [one for one in batch if one.offset < restored]
        again.replay(harness.read(replayed))
        if fresh := batch[len(replayed) :]:
            parts.append(again.process(harness.read(fresh)))
    facts = [fact for part in parts for fact in part.facts]
    assert facts == [fact for fact in whole.facts if _offset(fact.headers) >= restored]
    assert sum(part.counts.consumed for part in parts) == 200 - restored


def _offset(headers: tuple[tuple[str, bytes | None], ...]) -> int:
    return int((headers[0][1] or b"").rpartition(b"/")[2])


@pytest.mark.parametrize(
    ("value", "reason", "words"),
    [
        (None, Reason.EMPTY_VALUE, ["null", "tombstone"]),
        (b"", Reason.EMPTY_VALUE, ["empty"]),
        (b'{"type": "request", ', Reason.MALFORMED_JSON, ["JSON"]),
        (harness.event(GOOD, block_keys=[1, 2.5]), Reason.KEY_TYPE, ["block_keys[1]", "2.5", "integer"]),
        (harness.event(GOOD, block_keys=[True, 2]), Reason.KEY_TYPE, ["block_keys[0]", "True", "integer"]),
        (harness.event(GOOD, block_keys=[1, 2**64]), Reason.KEY_OUT_OF_RANGE, ["block_keys[1]", str(2**64)]),
        (harness.event(GOOD, input_token_len=20), Reason.LENGTH_MISMATCH, ["2 block keys", "20", "5 full blocks"]),
        (harness.event(GOOD, instance_id="nobody"), Reason.UNKNOWN_INSTANCE, ["'nobody'", "registry"]),
        (harness.event(GOOD, type="read"), Reason.UNKNOWN_TYPE, ["'read'"]),
        (harness.event(GOOD, timestamp_ns="now"), Reason.INVALID_FIELD, ["timestamp_ns", "now"]),
    ],
)
def test_poison_becomes_a_dead_letter_and_leaves_the_others_alone(
    lane: Lane, value: bytes | None, reason: Reason, words: list[str]
) -> None:
    headers = (("tap", b"7"), ("empty", None))
    output = lane.process(
        harness.read(
            [record(4, harness.event(GOOD)), record(5, value, headers=headers), record(9, harness.event(GOOD))]
        )
    )
    (letter,) = output.dead_letters
    assert (letter.topic, letter.partition, letter.key, letter.value) == ("dead", 3, b"key", value)
    assert [name for name, _ in letter.headers] == [SOURCE_HEADER, REASON_HEADER, ERROR_HEADER, "tap", "empty"]
    own = dict(letter.headers)
    assert own[SOURCE_HEADER] == b"requests/3/5"
    assert own[REASON_HEADER] == reason.value.encode()
    sentence = (own[ERROR_HEADER] or b"").decode()
    assert all(word in sentence for word in words), sentence
    curves = [json.loads(fact.value or b"")["hit_curve"] for fact in output.facts]
    assert curves == [[], [[1, 2]]]
    assert output.counts.dead_letters == {reason: 1}
    assert (output.counts.consumed, output.counts.facts) == (3, 2)
    assert lane.next_offset == 10


def test_a_length_that_no_prompt_has_is_a_dead_letter(lane: Lane) -> None:
    register = {"type": "register", "instance_id": KNOWN, "block_size_tokens": 2**31 - 1, "block_bytes": 1}
    request = GOOD._replace(block_keys=np.arange(600), input_token_len=0)
    output = lane.process(harness.read([record(0, json.dumps(register).encode()), record(1, harness.event(request))]))
    assert output.counts.dead_letters == {Reason.INVALID_FIELD: 1}
    sentence = dict(output.dead_letters[0].headers)[ERROR_HEADER] or b""
    assert sentence.startswith(b"input_token_len 1,288,490,188,200 is more than")


def test_what_the_value_lacks_comes_from_the_record(lane: Lane) -> None:
    bare = b'{"type":"get","keys":[1]}'
    output = lane.process(
        harness.read(
            [
                record(0, bare, key=b"chat-a", timestamp_ms=12),
                record(1, bare, key=None),
                record(2, bare, key=b"\xff"),
                record(3, bare, key=b"chat-a", timestamp_ms=None),
            ]
        )
    )
    (fact,) = output.facts
    assert fact.key == b"chat-a"
    assert json.loads(fact.value or b"")["timestamp_ns"] == 12_000_000
    assert output.counts.dead_letters == {Reason.INSTANCE_MISSING: 2, Reason.TIME_MISSING: 1}


def test_writes_are_counted_and_ignored(lane: Lane) -> None:
    output = lane.process(harness.read([record(0, b'{"type":"write","keys":"anything"}')]))
    assert (output.facts, output.dead_letters) == ((), ())
    assert (output.counts.consumed, output.counts.ignored) == (1, {Ignored.WRITE: 1})


def test_times_that_go_back_are_counted_by_instance(lane: Lane) -> None:
    def at(offset: int, instance_id: str, time: int) -> SourceRecord:
        return record(offset, harness.event(GOOD, instance_id=instance_id, timestamp_ns=time))

    first = lane.process(
        harness.read([at(0, "chat-a", 10), at(1, "chat-b", 5), at(2, "chat-a", 9), at(3, "chat-a", 10)])
    )
    second = lane.process(harness.read([at(4, "chat-a", 9), at(5, "chat-b", 6)]))
    assert (first.counts.times_clamped, second.counts.times_clamped) == (1, 1)


def test_instances_that_share_a_lane_share_no_cache(lane: Lane) -> None:
    lane.process(harness.read([record(0, harness.event(GOOD))]))
    output = lane.process(harness.read([record(1, harness.event(GOOD, instance_id="chat-b"))]))
    assert json.loads(output.facts[0].value or b"")["hit_curve"] == []
    held = {status.config.instance_id: status.unique_blocks for status in lane.instances()}
    assert held == {"chat-a": 2, "chat-b": 2}
    assert all(status.memory_bytes > 0 for status in lane.instances())


def test_an_exception_of_our_own_is_no_dead_letter(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(InstanceEngine, "process_prepared", broken)
    with pytest.raises(ZeroDivisionError):
        lane.process(harness.read([record(0, harness.event(GOOD))]))


@pytest.mark.parametrize(
    "foreign",
    [
        lambda: SourceRecord("requests", 2, 1, None, b"{}", 0),
        lambda: record(0, b"{}"),
    ],
)
def test_a_record_of_another_partition_or_from_the_past_is_refused(
    lane: Lane, foreign: Callable[[], SourceRecord]
) -> None:
    lane.process(harness.read([record(0, harness.event(GOOD))]))
    with pytest.raises(AssertionError, match="partition 3, at offset 1"):
        lane.process(harness.read([foreign()]))
