"""The worker on the embedded broker: every record accounted for, other lanes undisturbed, no flood of facts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from litehit.errors import TooManyBlocks
from litehit.instance import InstanceEngine
from litehit.prepared import Prepared
from litehit.request import Request
from schemas.dead_letter import ERROR_HEADER, SOURCE_HEADER, Reason
from service.api.readiness import lanes_waiting
from service.embedded import EmbeddedBroker
from service.errors import BatchAborted
from service.lanes import lane as lane_module
from service.lanes.at_least_once import AtLeastOnce
from service.lanes.counts import Ignored
from service.lanes.handover import Handover, Settled
from service.lanes.lane import Lane, LaneOutput
from service.lanes.read_records import ReadRecords
from service.lanes.rendering import Computed, render
from service.lanes.status import LanesStatus, LaneState
from service.lanes.transaction import MicroBatch
from service.records import OutputRecord, SourceRecords
from service.settings import Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness
from tests.archiver_stores import SilentStore

Run = Callable[..., harness.RunningWorker]
PARTITIONS = 4


def test_every_poison_is_told_and_every_other_record_gives_its_fact(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run
) -> None:
    requests = harness.make_requests(400, seed=3)
    one = requests[0]
    poison: list[tuple[bytes | None, Reason, str]] = [
        (b'{"type":"request",', Reason.MALFORMED_JSON, "is not valid JSON"),
        (harness.event(one, block_keys=[1.5], input_token_len=4), Reason.KEY_TYPE, "block_keys[0] = 1.5"),
        (harness.event(one, block_keys=[True], input_token_len=4), Reason.KEY_TYPE, "block_keys[0] = True"),
        (harness.event(one, block_keys=[2**64], input_token_len=4), Reason.KEY_OUT_OF_RANGE, f"[0] = {2**64}"),
        (harness.event(one, block_keys=[1, 2], input_token_len=99), Reason.LENGTH_MISMATCH, "input_token_len 99"),
        (harness.event(one, instance_id="nobody"), Reason.UNKNOWN_INSTANCE, "instance_id 'nobody'"),
        (b"", Reason.EMPTY_VALUE, "is empty"),
        (None, Reason.EMPTY_VALUE, "tombstone"),
        (b'{"type":"request","block_keys":[' + b"7," * 499_980, Reason.MALFORMED_JSON, "is not valid JSON"),
    ]
    records: list[tuple[str, bytes | None]] = []
    bad: list[int] = []
    for number, request in enumerate(requests):
        if number % 40 == 20 and len(bad) < len(poison):
            bad.append(len(records))
            records.append((request.instance_id, poison[len(bad) - 1][0]))
        records.append((request.instance_id, harness.event(request)))
    records.append((one.instance_id, b'{"type":"write"}'))
    assert max(len(value or b"") for _, value in records) > 999_000
    with run_worker() as worker:
        places = harness.send(broker.bootstrap, settings.requests_topic, records)
        status = worker.wait_until(harness.caught_up(places))
    letters = {
        letter.source: letter
        for letter in harness.read_topic(broker.bootstrap, settings.dead_letters_topic, PARTITIONS)
    }
    for number, (value, reason, words) in zip(bad, poison, strict=True):
        partition, offset = places[number]
        letter = letters.pop(f"{settings.requests_topic}/{partition}/{offset}")
        assert (letter.partition, letter.key, letter.value) == (partition, records[number][0].encode(), value)
        assert letter.reason == reason.value
        assert words in letter.header(ERROR_HEADER)
    assert letters == {}
    assert facts_by_instance(broker, settings) == harness.straight_facts(requests, worker.known)
    assert sum((Counter(lane.counts.dead_letters) for lane in status.lanes), Counter()) == Counter(
        reason for _, reason, _ in poison
    )
    assert sum(lane.counts.consumed for lane in status.lanes) == len(records)
    assert sum((Counter(lane.counts.ignored) for lane in status.lanes), Counter()) == {Ignored.WRITE: 1}
    by_outcome = {
        outcome: sum(
            worker.metric("litehit_lane_records_total", partition=str(partition), outcome=outcome)
            for partition in range(PARTITIONS)
        )
        for outcome in ("fact", "dead_letter", "ignored")
    }
    assert by_outcome == {"fact": 400, "dead_letter": len(poison), "ignored": 1}


def facts_by_instance(broker: EmbeddedBroker, settings: Settings) -> dict[str, list[bytes | None]]:
    facts: dict[str, list[bytes | None]] = {}
    for fact in harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS):
        topic, partition, _ = fact.header(SOURCE_HEADER).split("/")
        assert (topic, int(partition)) == (settings.requests_topic, fact.partition)
        facts.setdefault((fact.key or b"").decode(), []).append(fact.value)
    return facts


def test_the_state_of_each_lane_is_shown(broker: EmbeddedBroker, settings: Settings, run_worker: Run) -> None:
    requests = harness.make_requests(100, seed=4)
    with run_worker() as worker:
        places = harness.send(
            broker.bootstrap, settings.requests_topic, [(one.instance_id, harness.event(one)) for one in requests]
        )
        worker.wait_until(harness.caught_up(places))
        ends = dict.fromkeys(range(PARTITIONS), 0) | {partition: offset + 1 for partition, offset in sorted(places)}
        status = worker.wait_until(
            lambda now: (
                {lane.partition: lane.end_offset for lane in now.lanes} == ends
                and all(lane.state is LaneState.RUNNING for lane in now.lanes)
            )
        )
        held = {instance.config.instance_id: instance for lane in status.lanes for instance in lane.instances}
        assert set(held) == {request.instance_id for request in requests}
        for lane in status.lanes:
            label = str(lane.partition)
            assert (lane.state, lane.lag, lane.error) == (LaneState.RUNNING, 0, None)
            assert worker.metric("litehit_lane_state", partition=label, state="running") == 1
            assert worker.metric("litehit_lane_state", partition=label, state="stopped") == 0
            assert worker.metric("litehit_lane_next_offset", partition=label) == lane.next_offset
            for instance in lane.instances:
                labels = {"partition": label, "instance_id": instance.config.instance_id}
                assert worker.metric("litehit_instance_unique_blocks", **labels) == instance.unique_blocks > 0
                assert worker.metric("litehit_instance_memory_bytes", **labels) == instance.memory_bytes > 0
    assert worker.worker.status().lanes == ()


@pytest.mark.parametrize("where", ["engine", "rendering"])
def test_a_fault_of_ours_stops_its_lane_only_and_commits_nothing_of_it(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    process = InstanceEngine.process_prepared

    def breaks(instance_id: str) -> None:
        if instance_id == "chat-a":
            raise TooManyBlocks(blocks=2, limit=1, request=0)

    def broken_engine(engine: InstanceEngine, prepared: Prepared) -> object:
        breaks(engine.config.instance_id)
        return process(engine, prepared)

    def broken_rendering(topic: str, sources: SourceRecords, parts: Sequence[Computed]) -> tuple[OutputRecord, ...]:
        for part in parts:
            for instance_id in part.facts.instance_ids:
                breaks(instance_id)
        return render(topic, sources, parts)

    if where == "engine":
        monkeypatch.setattr(InstanceEngine, "process_prepared", broken_engine)
    else:
        monkeypatch.setattr(lane_module, "render", broken_rendering)
    requests = harness.make_requests(200, seed=5)
    with run_worker() as worker:
        places = harness.send(
            broker.bootstrap, settings.requests_topic, [(one.instance_id, harness.event(one)) for one in requests]
        )
        (stopped,) = {place[0] for place, one in zip(places, requests, strict=True) if one.instance_id == "chat-a"}
        others = [place for place in places if place[0] != stopped]
        worker.wait_until(harness.caught_up(others))
        status = worker.wait_until(lambda now: any(lane.state is LaneState.STOPPED for lane in now.lanes))
        (lane,) = [lane for lane in status.lanes if lane.state is LaneState.STOPPED]
        assert lane.partition == stopped
        assert f"TooManyBlocks at or after {settings.requests_topic}/{stopped}/" in (lane.error or "")
        assert worker.metric("litehit_lane_state", partition=str(stopped), state="stopped") == 1
    facts = harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS)
    assert {fact.source for fact in facts if fact.partition != stopped} == {
        f"{settings.requests_topic}/{partition}/{offset}" for partition, offset in others
    }
    assert harness.read_topic(broker.bootstrap, settings.dead_letters_topic, PARTITIONS) == []


def test_an_aborted_batch_is_rebuilt_from_the_committed_offset(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over = AtLeastOnce.hand_over
    seen: Counter[str] = Counter()

    def sometimes(transaction: AtLeastOnce, batch: MicroBatch) -> None:
        seen["batches"] += 1
        if seen["batches"] % 3 == 0:
            raise BatchAborted("planted")
        hand_over(transaction, batch)

    monkeypatch.setattr(AtLeastOnce, "hand_over", sometimes)
    requests = harness.make_requests(300, seed=6)
    with run_worker() as worker:
        places: list[tuple[int, int]] = []
        for low in range(0, 300, 50):
            part = [(one.instance_id, harness.event(one)) for one in requests[low : low + 50]]
            places += harness.send(broker.bootstrap, settings.requests_topic, part)
            worker.wait_until(harness.caught_up(places))
        assert worker.metric("litehit_lane_aborts_total") >= 2
        status = worker.wait_until(lambda now: sum(lane.counts.facts for lane in now.lanes) >= 300)
        assert sum(lane.counts.facts for lane in status.lanes) == 300
    assert facts_by_instance(broker, settings) == harness.straight_facts(requests, worker.known)


def has_facts(count: int) -> Callable[[LanesStatus], bool]:
    return lambda now: sum(lane.counts.facts for lane in now.lanes) == count


def test_what_was_made_beside_an_aborted_batch_is_dropped_with_it(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are aborted at the last moment, when the lanes have processed the next one."""
    hand_over, settle, process = AtLeastOnce.hand_over, Handover.settle, Lane.process
    settling = threading.Event()
    seen: Counter[str] = Counter()

    def sometimes(transaction: AtLeastOnce, batch: MicroBatch) -> None:
        seen["batches"] += 1
        if seen["batches"] % 3 == 0:
            before = seen["processed"]
            assert settling.wait(60)
            seen["dropped"] += seen["processed"] > before
            raise BatchAborted("planted")
        hand_over(transaction, batch)

    def told_settle(handover: Handover) -> Settled | None:
        settling.set()
        settled = settle(handover)
        settling.clear()
        return settled

    def counted(lane: Lane, records: ReadRecords) -> LaneOutput:
        seen["processed"] += 1
        return process(lane, records)

    monkeypatch.setattr(AtLeastOnce, "hand_over", sometimes)
    monkeypatch.setattr(Handover, "settle", told_settle)
    monkeypatch.setattr(Lane, "process", counted)
    settings = settings.model_copy(update={"batch_records": 40})
    requests: list[Request] = []
    with harness.RunningWorker(settings, broker.bootstrap, layout, harness.registry(tmp_path)) as worker:
        # Whether a lane is further by the time that a batch is aborted is up to the threads.
        while not seen["dropped"]:
            assert len(requests) < 30_000
            more = harness.make_requests(1500, seed=16 + len(requests))
            events = [(one.instance_id, harness.event(one)) for one in more]
            requests += more
            worker.wait_until(harness.caught_up(harness.send(broker.bootstrap, settings.requests_topic, events)))
            worker.wait_until(has_facts(len(requests)))
    assert facts_by_instance(broker, settings) == harness.straight_facts(requests, worker.known)


def test_a_lane_that_is_restored_for_long_holds_up_no_other(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run
) -> None:
    """The store does not answer for one partition; those before it work meanwhile, and records are polled."""
    requests = harness.make_requests(400, seed=17)
    events = [(one.instance_id, harness.event(one)) for one in requests]
    places = harness.send(broker.bootstrap, settings.requests_topic, events)
    first, *_, slow = sorted({partition for partition, _ in places})  # lanes are restored one after the other
    assert first < slow
    store = SilentStore(settings.store, f"/{slow:05d}")
    with run_worker(store=store) as worker:
        assert store.asked.wait(60)
        status = worker.wait_until(harness.caught_up([place for place in places if place[0] != slow]))
        assert {lane.partition: lane.next_offset for lane in status.lanes}[slow] is None
        more = harness.send(broker.bootstrap, settings.requests_topic, events)
        worker.wait_until(harness.caught_up([place for place in more if place[0] != slow]))
        store.answer.set()
        worker.wait_until(harness.caught_up(more))
    assert facts_by_instance(broker, settings) == harness.straight_facts([*requests, *requests], worker.known)


def test_offsets_that_are_not_committed_abort_the_batch(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once, to the letter: the batch's facts come twice, and both times the same."""
    init = AtLeastOnce.__init__
    failures = iter([KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))])

    class Consumer:
        def __init__(self, client: Any) -> None:
            self._client = client

        def commit(self, **arguments: object) -> object:
            for failure in failures:
                raise failure
            return self._client.commit(**arguments)

    def wrapped(transaction: AtLeastOnce, settings: Settings, bootstrap: str, consumer: object, *others: Any) -> None:
        init(transaction, settings, bootstrap, Consumer(consumer), *others)  # type: ignore[arg-type]

    monkeypatch.setattr(AtLeastOnce, "__init__", wrapped)
    requests = harness.make_requests(20, seed=7)
    with run_worker() as worker:
        places = harness.send(
            broker.bootstrap, settings.requests_topic, [(one.instance_id, harness.event(one)) for one in requests]
        )
        worker.wait_until(harness.caught_up(places))
        worker.wait_until(lambda now: sum(lane.counts.facts for lane in now.lanes) == 20)
        assert worker.metric("litehit_lane_aborts_total") == 1
    facts = harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS)
    assert len(facts) > 20
    by_source: dict[str, set[bytes | None]] = {}
    for fact in facts:
        by_source.setdefault(fact.source, set()).add(fact.value)
    assert len(by_source) == 20
    assert all(len(values) == 1 for values in by_source.values())


def test_a_hold_stops_the_flow_and_its_end_lets_it_go_on(
    broker: EmbeddedBroker, settings: Settings, run_worker: Run
) -> None:
    hold = harness.Hold()
    requests = harness.make_requests(60, seed=8)
    records = [(one.instance_id, harness.event(one)) for one in requests]
    hold.held.set()
    with run_worker(hold=hold) as worker:
        worker.wait_until(lambda now: len(now.lanes) == 4 and all(lane.next_offset == 0 for lane in now.lanes))
        places = harness.send(broker.bootstrap, settings.requests_topic, records[:30])
        hold.go_round(20)
        assert harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS) == []
        hold.held.clear()
        worker.wait_until(harness.caught_up(places))
        hold.held.set()
        hold.go_round(3)  # the worker is idle, so that nothing is in its hands when the hold comes into force
        places = harness.send(broker.bootstrap, settings.requests_topic, records[30:])
        hold.go_round(20)
        assert len(harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS)) == 30
        hold.held.clear()
        worker.wait_until(harness.caught_up(places))
    assert facts_by_instance(broker, settings) == harness.straight_facts(requests, worker.known)


@pytest.mark.parametrize("lost", [True, False])
def test_who_lost_all_partitions_waits_for_the_group_again(run_worker: Run, lost: bool) -> None:
    worker = run_worker().worker
    worker.assigned([0, 1])
    # What is revoked is another member's, as it is to be.
    (worker.lost if lost else worker.revoked)([0, 1])
    stop = threading.Event()
    stop.set()
    worker.run(stop)
    assert worker.status().assigned is not lost
    waiting = [one.detail for one in lanes_waiting(worker.status)()]
    assert waiting == (["the consumer group has not assigned partitions yet"] if lost else [])
