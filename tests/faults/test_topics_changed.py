"""What operators do to topics under a running or a stopped worker: lanes stop with a sentence, never silently cold."""

from __future__ import annotations

import signal
from collections.abc import Callable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from service.settings import Role
from tests import lanes_harness as harness
from tests.cli_harness import RunningService
from tests.faults.deployment import Deployment

Deploy = Callable[..., Deployment]


def stopped_lanes(service: RunningService, count: int) -> dict[int, str]:
    """Why lanes stopped, by partition, once so many have."""
    errors: dict[int, str] = {}
    while len(errors) < count:
        event = service.wait_for_event("lane_stopped")
        errors[event["partition"]] = event["error"]
    return errors


def admin_of(deployment: Deployment) -> AdminClient:
    return AdminClient({"bootstrap.servers": deployment.bootstrap, "log_level": 4})


def used(places: list[tuple[int, int]]) -> set[int]:
    return {partition for partition, _ in places}


def test_retention_that_overtakes_a_stopped_worker_stops_its_lane(deploy: Deploy) -> None:
    deployment = deploy()
    worker = deployment.serve(Role.LANES)
    places = deployment.publish(harness.make_requests(200, seed=91))
    deployment.await_processed(places)
    assert worker.stop(signal.SIGTERM) == 0
    unread = deployment.publish(harness.make_requests(200, seed=92))
    overtaken = places[0][0]
    offset = max(offset for partition, offset in unread if partition == overtaken)
    place = TopicPartition(deployment.settings.requests_topic, overtaken, offset)
    with admin_of(deployment) as admin:
        for future in admin.delete_records([place]).values():
            assert future.result().low_watermark == offset
    worker = deployment.serve(Role.LANES)
    errors = stopped_lanes(worker, 1)
    assert set(errors) == {overtaken}
    assert f"the requests before offset {offset} have expired" in errors[overtaken]
    assert "litehit lanes reset" in errors[overtaken]
    deployment.await_processed([place for place in unread if place[0] != overtaken])
    assert worker.stop(signal.SIGTERM) == 0


def test_partitions_that_are_added_stop_every_lane(deploy: Deploy) -> None:
    deployment = deploy()
    worker = deployment.serve(Role.LANES)
    places = deployment.publish(harness.make_requests(200, seed=93))
    deployment.await_processed(places)
    assert worker.stop(signal.SIGTERM) == 0
    wanted = [NewPartitions(topic, 6) for topic in deployment.settings.topics]
    with admin_of(deployment) as admin:
        for future in admin.create_partitions(wanted).values():
            future.result()
    worker = deployment.serve(Role.LANES)
    errors = stopped_lanes(worker, 6)
    assert all("the topic has 6 partitions, and had 4" in error for error in errors.values())
    assert worker.stop(signal.SIGTERM) == 0


def test_a_topic_that_is_recreated_under_a_running_worker_stops_it(deploy: Deploy) -> None:
    """Offsets and caches of the old topic are not taken for the new one's."""
    deployment = deploy()
    worker = deployment.serve(Role.LANES)
    places = deployment.publish(harness.make_requests(200, seed=94))
    deployment.await_processed(places)
    recreate(deployment)
    deployment.publish(harness.make_requests(20, seed=95))
    errors = stopped_lanes(worker, 4)
    assert all("the topic was recreated while it was read" in error for error in errors.values())
    assert worker.stop(signal.SIGTERM) == 0
    assert len(harness.read_topic(deployment.bootstrap, deployment.settings.facts_topic, 4)) == 200


def test_partitions_that_are_added_under_a_running_worker_stop_it(deploy: Deploy) -> None:
    deployment = deploy()
    worker = deployment.serve(Role.LANES)
    places = deployment.publish(harness.make_requests(200, seed=96))
    deployment.await_processed(places)
    with admin_of(deployment) as admin:
        for future in admin.create_partitions([NewPartitions(deployment.settings.requests_topic, 6)]).values():
            future.result()
    deployment.publish(harness.make_requests(200, seed=97))
    errors = stopped_lanes(worker, 4)
    assert all("the topic has 6 partitions, and had 4 at the start" in error for error in errors.values())
    assert worker.stop(signal.SIGTERM) == 0
    assert len(harness.read_topic(deployment.bootstrap, deployment.settings.facts_topic, 4)) == 200


def recreate(deployment: Deployment) -> None:
    """Delete the requests topic and make another of its name."""
    name = deployment.settings.requests_topic
    with admin_of(deployment) as admin:
        for future in admin.delete_topics([name]).values():
            future.result()

        def made() -> bool:
            try:
                for future in admin.create_topics([NewTopic(name, deployment.layout.partitions, 1)]).values():
                    future.result()
            except KafkaException:  # the old one is still being deleted
                return False
            return True

        harness.wait_for(made)
