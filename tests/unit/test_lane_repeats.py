"""A producer's retry gives no fact and touches no cache, however records are cut and wherever the lane was restored."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.registry import Registry
from litehit.request import Request
from service.errors import TooManyDeadLetters
from service.lanes.counts import Ignored, LaneCounts
from service.lanes.lane import Lane
from service.lanes.poison_limit import NO_LIMITS, PoisonLimits
from service.lanes.snapshot import Snapshot, decode, encode
from service.records import SourceRecord
from tests import lanes_harness as harness
from tests import snapshots_made as made

INSTANCES = ("chat-a", "chat-b")
STREAM = st.lists(
    st.tuples(st.sampled_from(INSTANCES), st.sampled_from(["", "t1", "t2", "t3", "bad"]), st.integers(0, 3)),
    max_size=30,
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


def new_lane(known: Registry, window: int, restored: Snapshot | None = None) -> Lane:
    return Lane(3, known, made.TARGETS, NO_LIMITS, window, restored)


def request(instance_id: str, trace_id: str, key: int) -> Request:
    length = 99 if trace_id == "bad" else 4  # a length that its keys do not have
    return Request(instance_id, trace_id, 5, np.array([key], np.int64), length)


def stream(requests: Sequence[Request]) -> list[SourceRecord]:
    return made.records_of(requests)


def run(lane: Lane, records: Sequence[SourceRecord], cuts: Sequence[int]) -> tuple[list[bytes | None], LaneCounts]:
    facts: list[bytes | None] = []
    counts = LaneCounts()
    bounds = [0, *sorted({min(cut, len(records)) for cut in cuts}), len(records)]
    for first, end in itertools.pairwise(bounds):
        output = lane.process(harness.read(records[first:end]))
        facts += [fact.value for fact in output.facts]
        counts += output.counts
    return facts, counts


def without_repeats(requests: Sequence[Request], window: int) -> list[Request]:
    """Slowly. A bad request is remembered by nobody."""
    recent: dict[str, list[str]] = {}
    left = []
    for one in requests:
        last = recent.setdefault(one.instance_id, [])
        if one.trace_id == "bad" or not one.trace_id or one.trace_id not in last:
            left.append(one)
            if one.trace_id not in {"", "bad"}:
                last.append(one.trace_id)
                del last[: max(0, len(last) - window)]
    return left


@given(
    items=STREAM,
    window=st.integers(1, 3),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    stop=st.integers(0, 30),
    replay=st.integers(0, 5),
)
def test_the_facts_are_those_of_the_stream_without_its_repeats(
    known: Registry, items: list[tuple[str, str, int]], window: int, cuts: list[int], stop: int, replay: int
) -> None:
    requests = [request(*item) for item in items]
    records = stream(requests)
    expected, _ = run(new_lane(known, 0), stream(without_repeats(requests, window)), [])
    facts, counts = run(new_lane(known, window), records, cuts)
    assert facts == expected
    assert counts.ignored.get(Ignored.REPEAT, 0) == len(requests) - len(without_repeats(requests, window))
    # From a snapshot anywhere, with some of it replayed.
    first = new_lane(known, window)
    before, _ = run(first, records[:stop], [])
    file = made.snapshot_of(first)
    restored = new_lane(known, window, decode(file.path, bytes(encode(file))))
    replayed = records[stop : stop + replay]
    restored.replay(harness.read(replayed))
    restored.go_live()
    after, _ = run(restored, records[stop + replay :], [])
    again, _ = run(first, replayed, [])
    assert before + again + after == expected


def test_what_is_replayed_is_told_apart_as_it_was_before_the_setting_changed(known: Registry) -> None:
    twice = [request("chat-a", "t", 1)] * 2
    records = stream([*twice, *twice, *twice])
    lane = new_lane(known, 0)
    lane.process(harness.read(records[:1]))
    snapshot = made.snapshot_of(lane)
    lane.process(harness.read(records[1:3]))  # facts, since there was no window
    restored = new_lane(known, 5, snapshot)
    restored.replay(harness.read(records[1:3]))
    assert restored.instances()[0].totals.requests == lane.instances()[0].totals.requests == 3
    restored.go_live()
    counts = restored.process(harness.read(records[3:])).counts
    assert (counts.facts, counts.ignored) == (1, {Ignored.REPEAT: 2})
    smaller = new_lane(known, 0, made.snapshot_of(restored))
    smaller.go_live()
    later = [SourceRecord("requests", 3, 6, b"key", harness.event(twice[0]), 1)]
    assert smaller.process(harness.read(later)).counts.facts == 1


def test_the_traces_of_an_instance_that_is_registered_no_more_are_kept(known: Registry) -> None:
    lane = new_lane(known, 5)
    lane.process(harness.read(stream([request("chat-a", "t", 1)])))
    elsewhere = Lane(3, Registry([]), made.TARGETS, NO_LIMITS, 5, made.snapshot_of(lane))
    (kept,) = made.snapshot_of(elsewhere).instances
    assert kept.traces.nbytes == 16


def test_ignored_records_are_none_of_the_dead_letter_limits(known: Registry) -> None:
    """Writes and repeats between bad records neither end their row nor dilute their share."""
    good, bad, write = harness.event(request("chat-a", "t", 1)), b"{", b'{"type":"write"}'

    def process(limits: PoisonLimits, values: Sequence[bytes]) -> LaneCounts:
        records = [SourceRecord("requests", 3, at, None, value, 1) for at, value in enumerate(values)]
        return Lane(3, known, made.TARGETS, limits, 10).process(harness.read(records)).counts

    with pytest.raises(TooManyDeadLetters, match="requests/3/6: 3 dead letters in a row"):
        process(PoisonLimits(2, 1.0, 1), [good, write, bad, good, bad, write, bad])
    with pytest.raises(TooManyDeadLetters, match="3 dead letters among the last 4 requests"):
        process(PoisonLimits(0, 0.5, 4), [good, *[write] * 20, *[bad, good, write] * 3])
    counts = process(PoisonLimits(2, 0.9, 4), [good, *[write, good] * 20])
    assert (counts.facts, counts.ignored) == (1, {Ignored.WRITE: 20, Ignored.REPEAT: 20})
