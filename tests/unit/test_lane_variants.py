"""A request's facts of several instances, in one lane."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit.registry import InstanceConfig, Registry
from litehit.request import Request
from litehit.targets import AS_NAMED, Routing
from schemas.dead_letter import SOURCE_HEADER, Reason
from service.errors import CannotRestore
from service.lanes.lane import Lane
from service.lanes.restore import check_targets
from service.lanes.snapshot import Reset, Snapshot, decode, encode
from service.records import SourceRecord
from tests import lanes_harness as harness
from tests import snapshots_made as made

CONFIG = InstanceConfig("a", "g", 8, 4, 1024, False, 0, (1.0,))
COARSE = replace(CONFIG, instance_id="coarse", block_size_tokens=16, block_bytes=2048)
SHORT = replace(CONFIG, instance_id="short", ttl_ns=3)
PLAIN = replace(CONFIG, instance_id="b", enable_prefix_hash=True)
REGISTRY = Registry([CONFIG, PLAIN], {"a": [COARSE, SHORT]})
POOL = Routing(override_instance_id="a")

requests = st.lists(
    st.builds(
        lambda instance_id, time, keys, tail: (instance_id, time, keys, 4 * len(keys) + tail),
        st.sampled_from("ab"),
        st.integers(0, 20),
        st.lists(st.integers(0, 5), max_size=9),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)
Traffic = list[tuple[str, int, list[int], int]]


def records(traffic: Traffic, to: str | None = None) -> list[SourceRecord]:
    return made.records_of(
        [
            Request(instance_id if to is None else to, f"t{n}", time, np.array(keys, np.int64), length)
            for n, (instance_id, time, keys, length) in enumerate(traffic)
        ]
    )


def lane(known: Registry, routing: Routing = AS_NAMED, restored: Snapshot | None = None) -> Lane:
    return Lane(3, known, made.TARGETS, restored=restored, routing=routing)


def values(known: Registry, read: list[SourceRecord], routing: Routing = AS_NAMED) -> list[bytes]:
    return [fact.value or b"" for fact in lane(known, routing).process(harness.read(read)).facts]


@settings(max_examples=60, deadline=None)
@given(traffic=requests, routing=st.sampled_from([AS_NAMED, POOL, Routing(fanout_all_instances=True)]))
def test_each_has_the_facts_that_it_would_have_alone(traffic: Traffic, routing: Routing) -> None:
    together = values(REGISTRY, records(traffic), routing)
    by_instance: dict[str, list[bytes]] = {"a": [], "a@coarse": [], "a@short": [], "b": []}
    for value in together:
        by_instance[json.loads(value)["instance_id"]].append(value)
    for config in (CONFIG, *REGISTRY.variants("a"), PLAIN):
        instance_id = config.instance_id
        addressed = instance_id.partition("@")[0]
        own = [
            one
            for one in traffic
            if routing.fanout_all_instances or (addressed == "a" if routing is POOL else one[0] == addressed)
        ]
        if not routing:
            kept = [n for n, one in enumerate(traffic) if one[0] == addressed]
            read = [records(traffic, instance_id)[n] for n in kept]
        else:
            read = records(own, instance_id)
        assert by_instance[instance_id] == values(Registry([config]), read)


@settings(max_examples=40, deadline=None)
@given(traffic=requests, cut=st.integers(0, 40), again=st.integers(0, 40))
def test_batches_and_a_snapshot_make_no_difference(traffic: Traffic, cut: int, again: int) -> None:
    read = records(traffic)
    whole = lane(REGISTRY).process(harness.read(read))
    first = lane(REGISTRY)
    facts = list(first.process(harness.read(read[:cut])).facts)
    snapshot = made.snapshot_of(first)
    second = lane(REGISTRY, restored=decode(snapshot.path, bytes(encode(snapshot))))
    second.replay(harness.read(read[cut : cut + again]))
    second.go_live()
    assert [*facts, *whole.facts[len(facts) :]] == list(whole.facts)
    later = second.process(harness.read(read[cut + again :])).facts
    assert list(later) == list(whole.facts)[len(whole.facts) - len(later) :]


def test_facts_of_a_request_stand_together_and_name_it() -> None:
    output = lane(REGISTRY).process(
        harness.read(records([("a", 0, [1, 2], 8), ("b", 0, [1, 2], 8), ("a", 1, [1, 2], 8)]))
    )
    assert [(fact.key, fact.headers[0]) for fact in output.facts] == [
        (key, (SOURCE_HEADER, b"requests/3/%d" % offset))
        for offset, keys in enumerate([[b"a", b"a@coarse", b"a@short"], [b"b"], [b"a", b"a@coarse", b"a@short"]])
        for key in keys
    ]
    counts = output.counts
    assert (counts.consumed, counts.facts, counts.fact_records) == (3, 3, 7)


def test_a_time_that_goes_back_is_counted_once_a_request() -> None:
    assert lane(REGISTRY).process(harness.read(records([("a", 9, [1], 4), ("a", 8, [1], 4)]))).counts.times_clamped == 1


def test_a_request_that_one_target_does_not_take_is_a_dead_letter_and_no_fact() -> None:
    other = replace(CONFIG, instance_id="b", trace_block_size_tokens=8)
    known = Registry([CONFIG, other])
    output = lane(known, Routing(fanout_all_instances=True)).process(
        harness.read(records([("a", 0, [1, 2], 9), ("a", 0, [], 3)]))
    )
    assert [fact.key for fact in output.facts] == [b"a", b"b"]
    (letter,) = output.dead_letters
    assert b"so it is for 'b', which the request goes to" in (dict(letter.headers)["litehit-error"] or b"")
    assert output.counts.dead_letters == {Reason.LENGTH_MISMATCH: 1}
    assert (output.counts.consumed, output.counts.facts, output.counts.fact_records) == (2, 1, 2)


def test_a_request_of_a_variant_is_a_dead_letter_that_says_why() -> None:
    output = lane(REGISTRY).process(harness.read(records([("a@short", 0, [1], 4)])))
    (letter,) = output.dead_letters
    assert b"'a@short' is a variant of 'a' in the registry" in (dict(letter.headers)["litehit-error"] or b"")
    assert output.counts.dead_letters == {Reason.UNKNOWN_INSTANCE: 1}


def check(snapshot: Snapshot, known: Registry, routing: Routing = AS_NAMED) -> None:
    check_targets(made.TOPIC, 3, snapshot, known, routing)


def warm(known: Registry = REGISTRY, routing: Routing = AS_NAMED) -> Snapshot:
    worked = lane(known, routing)
    worked.process(harness.read(records([("a", 0, [1, 2], 8), ("b", 0, [1, 2], 8)])))
    return made.snapshot_of(worked)


def test_a_new_variant_is_never_silently_cold() -> None:
    fewer = Registry([CONFIG, PLAIN], {"a": [COARSE]})
    snapshot = warm(fewer)
    check(snapshot, fewer)
    with pytest.raises(CannotRestore) as caught:
        check(snapshot, REGISTRY)
    assert "has no cache of 'a@short' (beside 'a'), which would begin cold" in str(caught.value)
    assert "--to snapshot|cold|earliest" in str(caught.value)
    # The operator's choice; from the next snapshot on it is as any other, also without a request by then.
    chosen = replace(snapshot, reset=Reset("group", 2))
    check(chosen, REGISTRY)
    going_on = lane(REGISTRY, restored=chosen)
    going_on.go_live()
    check(made.snapshot_of(going_on), REGISTRY)
    assert [one.config.instance_id for one in going_on.instances()] == ["a", "a@coarse", "a@short", "b"]


@pytest.mark.parametrize("others", [[], [replace(CONFIG, instance_id="*")]])
def test_a_variant_that_was_taken_away_is_kept_for_its_return(others: list[InstanceConfig]) -> None:
    snapshot = warm()
    fewer = Registry([CONFIG, PLAIN, *others], {"a": [COARSE]})
    check(snapshot, fewer)
    going_on = lane(fewer, restored=snapshot)
    going_on.go_live()
    assert [one.config.instance_id for one in going_on.instances()] == ["a", "a@coarse", "b"]
    later = made.snapshot_of(going_on)
    assert [one.config.instance_id for one in later.instances] == ["a", "a@coarse", "a@short", "b"]
    check(later, REGISTRY)


def test_an_instance_is_no_variant_of_the_same_id() -> None:
    glob = replace(CONFIG, instance_id="*")
    plain = lane(Registry([glob]))
    plain.process(
        harness.read(
            made.records_of([Request("a@short", "t", 0, np.array([1]), 4), Request("a", "t", 0, np.array([1]), 4)])
        )
    )
    with pytest.raises(CannotRestore, match=r"no cache of 'a@short' \(beside 'a'\)"):
        check(made.snapshot_of(plain), Registry([glob], {"*": [SHORT]}))


def test_caches_filled_by_another_routing_are_refused() -> None:
    with pytest.raises(CannotRestore) as caught:
        check(warm(), REGISTRY, POOL)
    assert "requests go to 'a' (override_instance_id) now, and went to the instances that they name" in str(
        caught.value
    )
    assert "--to cold|earliest" in str(caught.value)
    fanned = Routing(fanout_all_instances=True)
    check(warm(routing=fanned), REGISTRY, fanned)
    with pytest.raises(CannotRestore, match="no cache of 'c'"):
        check(
            warm(routing=fanned),
            Registry([CONFIG, PLAIN, replace(CONFIG, instance_id="c")], {"a": [COARSE, SHORT]}),
            fanned,
        )
    # Where nothing was kept, nothing contradicts.
    check(replace(warm(), instances=()), REGISTRY, POOL)


def test_a_registration_does_not_take_over_what_a_variant_of_its_id_has_left() -> None:
    """They have had other requests."""
    without = lane(Registry([CONFIG, PLAIN]), restored=warm())
    without.go_live()
    fields = {"block_size_tokens": 8, "trace_block_size_tokens": 4, "block_bytes": 1024, "ttl_seconds": 0}
    registered = {"type": "register", "instance_id": "a@short", **fields}
    newcomer = Request("a@short", "new", 10**9, np.array([1, 2], np.int64), 8)
    first = without.next_offset
    told = made.records_of([newcomer], first)[0]._replace(value=json.dumps(registered).encode())
    output = without.process(harness.read([told, *made.records_of([newcomer, newcomer], first + 1)]))
    assert output.counts.dead_letters == {}
    curves = [json.loads(fact.value or b"")["hit_curve"] for fact in output.facts]
    assert curves == [[], [[1, 1]]]
    (status,) = [one for one in without.instances() if one.config.instance_id == "a@short"]
    assert (status.unique_blocks, status.totals.requests) == (1, 2)
