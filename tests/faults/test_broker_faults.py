"""Brokers that die: the only one comes back soon or late; of three, one after the other dies amid a transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from service.errors import ProducerFailed
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.status import LanesStatus
from service.lanes.transaction import MicroBatch
from tests import lanes_harness as harness
from tests.archiver_harness import RunningArchiver
from tests.faults.deployment import Deployment
from tests.faults.test_rebalances import Pouring
from tests.kafka.broker import KafkaCluster

# A dead broker is noticed in three seconds instead of nine.
PROPERTIES = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


@pytest.fixture
def own(jars: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    """A broker that nobody else needs."""
    with KafkaCluster(jars, tmp_path / "own", properties=PROPERTIES) as cluster:
        yield cluster


def test_a_broker_that_is_restarted(own: KafkaCluster, tmp_path: Path) -> None:
    """The same worker and the same archiver go on by themselves."""
    deployment = Deployment(own.bootstrap, tmp_path, batch_records=10, transaction_timeout_seconds=120)
    with (
        deployment.worker() as worker,
        RunningArchiver(deployment.settings, own.bootstrap, deployment.layout) as archiver,
    ):
        with Pouring(deployment, seed=70_000) as pouring:
            worker.wait_until(lambda now: facts_of(now) > 100)
            own.kill_node(0)
            own.start_node(0)
            own.await_nodes(1)
            before = facts_of(worker.worker.status())
            worker.wait_until(lambda now: facts_of(now) > before + 100, 120)
        worker.wait_until(harness.caught_up(pouring.places))
        await_archived(archiver)
    deployment.assert_exact(archived=True)


def test_a_broker_that_is_away_for_long(own: KafkaCluster, tmp_path: Path) -> None:
    """So long that the group's, a transaction's and every call's time is over.

    A minute would be over none that twenty seconds are not: the session lasts 3 s here, a transaction 5, a call 10. A
    worker that was amid a transaction ends, for Kafka has aborted it; then another is started, as whoever runs the
    process would.
    """
    deployment = Deployment(own.bootstrap, tmp_path, batch_records=10, transaction_timeout_seconds=5)
    with RunningArchiver(deployment.settings, own.bootstrap, deployment.layout) as archiver:
        first = deployment.worker()
        first.start()
        with Pouring(deployment, seed=71_000) as pouring:
            first.wait_until(lambda now: facts_of(now) > 100)
            own.kill_node(0)
            time.sleep(20)  # the fault itself
            assert first.metric("litehit_lanes_kafka_silence_seconds") > 10
            assert archiver.metric("kafka_silence_seconds") > 10
            own.start_node(0)
            own.await_nodes(1)
            deployment.publish(harness.make_requests(100, seed=72_000))
        first.stop()
        assert first.error is None or isinstance(first.error, ProducerFailed), first.error
        with deployment.worker() as second:
            second.wait_until(harness.caught_up(pouring.places))
            await_archived(archiver)
            harness.wait_for(lambda: second.metric("litehit_lanes_kafka_silence_seconds") < 3)
            harness.wait_for(lambda: archiver.metric("kafka_silence_seconds") < 3)
    deployment.assert_exact(archived=True)


def facts_of(status: LanesStatus) -> int:
    return sum(lane.counts.facts for lane in status.lanes)


def await_archived(archiver: RunningArchiver) -> None:
    archiver.wait_until(lambda now: bool(now.partitions) and all(one.lag == 0 for one in now.partitions))


def test_the_leader_dies_amid_a_transaction(jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the leader of a facts partition that the transaction writes to; among them coordinators, too."""
    hand_over, send_offsets = ExactlyOnce.hand_over, ExactlyOnce._send_offsets
    written: list[int] = []
    armed: list[bool] = []
    killed: list[int] = []

    def committing(transaction: ExactlyOnce, batch: MicroBatch) -> None:
        written[:] = [record.partition for record in batch.outputs if record.topic == facts]
        hand_over(transaction, batch)

    def amid(transaction: ExactlyOnce, batch: MicroBatch) -> None:
        # After the records were produced and before the offsets are sent.
        if armed and written:
            armed.clear()
            killed.append(admin.list_topics(facts, timeout=10).topics[facts].partitions[written[0]].leader)
            cluster.kill_node(killed[-1])
        send_offsets(transaction, batch)

    def replicated() -> bool:
        topics = admin.list_topics(timeout=10).topics.values()
        return all(len(place.isrs) == 3 for topic in topics for place in topic.partitions.values())

    with KafkaCluster(jars, tmp_path / "three", nodes=3, properties=PROPERTIES) as cluster:
        deployment = Deployment(cluster.bootstrap, tmp_path, batch_records=25, transaction_timeout_seconds=60)
        facts = deployment.settings.facts_topic
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 3})
        monkeypatch.setattr(ExactlyOnce, "hand_over", committing)
        monkeypatch.setattr(ExactlyOnce, "_send_offsets", amid)
        worker = deployment.worker()
        worker.start()
        worker.wait_until(lambda now: len(now.lanes) == 4)
        for number in range(3):
            harness.wait_for(replicated, 60)
            armed.append(True)
            places = deployment.publish(harness.make_requests(200, seed=80 + number))
            worker = one_that_catches_up(deployment, worker, places)
            assert len(killed) == number + 1
            cluster.start_node(killed[-1])
            cluster.await_nodes(3)
        worker.stop()
        deployment.assert_exact()


def one_that_catches_up(
    deployment: Deployment, worker: harness.RunningWorker, places: list[tuple[int, int]]
) -> harness.RunningWorker:
    """The worker, or its successor: where the coordinator died too, Kafka may have ended its transaction for it."""
    reached = harness.caught_up(places)
    harness.wait_for(lambda: worker.error is not None or reached(worker.worker.status()), 120)
    if worker.error is None:
        return worker
    assert isinstance(worker.error, ProducerFailed), worker.error
    successor = deployment.worker()
    successor.start()
    successor.wait_until(reached, 120)
    return successor
