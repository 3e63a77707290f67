"""Exactly once on a real Kafka: across restarts, aborts and two processes that take each other's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from litehit.registry import Registry
from litehit.request import Request
from service.errors import BatchAborted, Fenced
from service.lanes.committed import Position
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.membership import Membership
from service.lanes.status import LaneState
from service.lanes.transaction import MicroBatch
from service.settings import ProcessingGuarantee, Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness
from tests.kafka.broker import KafkaCluster

Run = Callable[..., harness.RunningWorker]


def publish(settings: Settings, requests: Sequence[Request], **properties: Any) -> list[tuple[int, int]]:
    assert settings.bootstrap is not None
    records = [(request.instance_id, harness.event(request)) for request in requests]
    return harness.send(settings.bootstrap, settings.requests_topic, records, **properties)


def committed_facts(settings: Settings, partitions: int) -> list[harness.Read]:
    assert settings.bootstrap is not None
    return harness.read_topic(settings.bootstrap, settings.facts_topic, partitions)


def assert_each_fact_once(
    settings: Settings, layout: TopicLayout, requests: Sequence[Request], known: Registry
) -> None:
    """What a read_committed reader sees is a straight replay, each fact once, on the partition of its request."""
    facts = committed_facts(settings, layout.partitions)
    by_instance: dict[str, list[bytes | None]] = {}
    for fact in facts:
        assert fact.source.split("/")[:2] == [settings.requests_topic, str(fact.partition)]
        by_instance.setdefault((fact.key or b"").decode(), []).append(fact.value)
    assert by_instance == harness.straight_facts(requests, known)
    for partition in range(layout.partitions):
        offsets = [int(fact.source.split("/")[2]) for fact in facts if fact.partition == partition]
        assert offsets == sorted(set(offsets))


@pytest.mark.parametrize("guarantee", list(ProcessingGuarantee))
def test_facts_are_those_of_a_straight_replay_and_a_restart_goes_on_warm(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, guarantee: ProcessingGuarantee
) -> None:
    requests = harness.make_requests(900, seed=11)
    for low in range(0, 900, 300):
        with run_worker(processing_guarantee=guarantee) as worker:
            places = publish(settings, requests[low : low + 300])
            status = worker.wait_until(harness.caught_up(places))
            # Only new requests gave facts: what was replayed to get warm is not handed over again.
            assert sum(lane.counts.consumed for lane in status.lanes) <= 300
    assert_each_fact_once(settings, layout, requests, known)


def test_requests_of_a_transactional_tap_leave_gaps_that_change_nothing(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry
) -> None:
    """Markers take up offsets, so that the committed offset lies past the last record, and aborted ones are unseen."""
    assert settings.bootstrap is not None
    requests = harness.make_requests(200, seed=12)
    tap = Producer(
        {
            "bootstrap.servers": settings.bootstrap,
            "transactional.id": f"tap-{settings.group_id}",
            "partitioner": "murmur2_random",
            "log_level": 4,
        }
    )
    tap.init_transactions()

    def publish_part(part: Sequence[Request], *, commit: bool) -> None:
        tap.begin_transaction()
        for request in part:
            tap.produce(settings.requests_topic, harness.event(request), request.instance_id)
        tap.flush()
        (tap.commit_transaction if commit else tap.abort_transaction)()

    for low in (0, 100):
        publish_part(harness.make_requests(20, seed=13), commit=False)
        publish_part(requests[low : low + 100], commit=True)
        publish_part(harness.make_requests(20, seed=14), commit=False)
        with run_worker() as worker:
            worker.wait_until(lambda now: sum(lane.counts.facts for lane in now.lanes) == 100)
            worker.wait_until(lambda now: all(lane.state is LaneState.RUNNING and lane.lag == 0 for lane in now.lanes))
    with run_worker() as worker:
        status = worker.wait_until(
            lambda now: (
                len(now.lanes) == 3 and all(lane.state is LaneState.RUNNING and lane.lag == 0 for lane in now.lanes)
            )
        )
        assert sum(lane.counts.consumed for lane in status.lanes) == 0
    tap.close()
    assert_each_fact_once(settings, layout, requests, known)


def test_aborted_transactions_are_rebuilt_and_never_seen(
    settings: Settings,
    layout: TopicLayout,
    run_worker: Run,
    known: Registry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness.abort_every_third(monkeypatch)
    requests = harness.make_requests(600, seed=15)
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(publish(settings, requests)))
        status = worker.wait_until(lambda now: sum(lane.counts.facts for lane in now.lanes) >= 600)
        assert sum(lane.counts.facts for lane in status.lanes) == 600
        assert worker.metric("litehit_lane_aborts_total") >= 3
    assert_each_fact_once(settings, layout, requests, known)


def test_the_older_of_two_processes_with_one_transactional_id_is_fenced(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry
) -> None:
    requests = harness.make_requests(400, seed=16)
    older = run_worker()
    older.start()
    first = publish(settings, requests[:200])
    older.wait_until(harness.caught_up(first))
    # In another group, so that the older one keeps its partitions and meets the newer one in its producer alone.
    with run_worker(group_id=f"{settings.group_id}-other", facts_topic=settings.dead_letters_topic) as newer:
        newer.wait_until(harness.caught_up(first))
        publish(settings, requests[200:])
        error = older.wait_for_end()
    assert isinstance(error, Fenced)
    assert "LITEHIT_TRANSACTIONAL_ID" in str(error)
    with run_worker() as successor:
        successor.wait_until(lambda now: sum(lane.counts.facts for lane in now.lanes) >= 200)
    assert_each_fact_once(settings, layout, requests, known)


def test_two_workers_share_the_partitions_and_one_takes_over(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry
) -> None:
    requests = harness.make_requests(600, seed=17)
    with run_worker() as stays:
        stays.wait_until(harness.caught_up(publish(settings, requests[:200])))
        with run_worker(transactional_id=f"{settings.transactional_id}-b") as leaves:
            leaves.wait_until(lambda now: len(now.lanes) == 1)
            stays.wait_until(lambda now: len(now.lanes) == 2)
            publish(settings, requests[200:400])
        stays.wait_until(lambda now: len(now.lanes) == 3)
        stays.wait_until(harness.caught_up(publish(settings, requests[400:])))
    assert_each_fact_once(settings, layout, requests, known)


def test_a_record_that_kafka_refuses_stops_its_lane_instead_of_looping(
    settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    """A dead letter too large for its topic, because the limit in the settings is wrong."""
    assert settings.bootstrap is not None
    with run_worker(dead_letter_max_bytes=2_000_000) as worker:
        value = b"x" * 1_048_400  # what the requests topic just takes; headers make it more
        ((partition, _),) = harness.send(settings.bootstrap, settings.requests_topic, [("chat-a", value)])
        status = worker.wait_until(lambda now: any(lane.state is LaneState.STOPPED for lane in now.lanes))
        (stopped,) = [lane for lane in status.lanes if lane.state is LaneState.STOPPED]
        assert stopped.partition == partition
        assert "max.message.bytes" in (stopped.error or "")
    with run_worker() as worker:
        worker.wait_until(lambda now: sum(lane.counts.consumed for lane in now.lanes) == 1)
    (letter,) = harness.read_topic(settings.bootstrap, settings.dead_letters_topic, layout.partitions)
    assert letter.header("litehit-truncated") == str(len(value))
    assert value.startswith(letter.value or b"-")


def test_a_recreated_topic_is_not_taken_for_the_old_one(
    settings: Settings, layout: TopicLayout, run_worker: Run, kafka: KafkaCluster, known: Registry
) -> None:
    with run_worker() as worker:
        places = publish(settings, harness.make_requests(50, seed=19))
        worker.wait_until(harness.caught_up(places))
    renamed = TopicLayout(layout.partitions, "another-generation", layout.facts_generation)
    with harness.RunningWorker(settings, kafka.bootstrap, renamed, known) as other:
        used = {partition for partition, _ in places}
        status = other.wait_until(
            lambda now: {lane.partition for lane in now.lanes if lane.state is LaneState.STOPPED} == used
        )
        errors = [lane.error or "" for lane in status.lanes if lane.error]
        assert all(f"belongs to generation {layout.requests_generation}" in error for error in errors)


class ExpelledConsumer:
    """A consumer that its group has expelled and that has not polled since."""

    def __init__(self) -> None:
        self.member = "member-1"

    def memberid(self) -> str:
        return self.member

    def consumer_group_metadata(self) -> object:
        return object()


@pytest.mark.parametrize("now", ["", "member-2"])
def test_offsets_are_not_committed_under_another_identity(settings: Settings, layout: TopicLayout, now: str) -> None:
    """A broker takes transactional offsets from nobody in particular without asking whose partitions they are."""
    assert settings.bootstrap is not None
    consumer = ExpelledConsumer()
    membership = Membership(consumer)  # type: ignore[arg-type]
    membership.joined()
    consumer.member = now
    transaction = ExactlyOnce(settings, settings.bootstrap, membership, lambda: False)
    transaction.open()
    with pytest.raises(BatchAborted, match="expelled"):
        transaction.commit(MicroBatch([], settings.requests_topic, {0: Position(1, "g:3:0")}))
    transaction.close()
