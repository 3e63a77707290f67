"""Registrations survive kill -9: what follows them is what an undisturbed run gives, and the audit agrees."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from schemas.dead_letter import Reason
from service.crash_points import VARIABLE, CrashPoint
from service.lanes.counts import Ignored
from service.settings import Role
from service.verify.deployment import Verification
from tests import lanes_harness as harness
from tests.faults.deployment import Deployment, places_of
from tests.registration_events import ENCODINGS

REGISTRATIONS = (
    ("chat-a", {"block_bytes": 77}),
    ("chat-b", {"ttl_seconds": 1}),  # needs a reset
    ("chat-b", {"ttl_seconds": 1, "reset": True}),
    ("new", {"block_size_tokens": 4, "block_bytes": 5}),
    ("agent-a", {"capacity_gb": [0.5, -1]}),
)


def send(deployment: Deployment, seed: int) -> None:
    """Requests, also of an instance that only the stream registers, and registrations among them."""
    requests = harness.make_requests(300, seed, (*harness.INSTANCES, "new"))
    producer = Producer({"bootstrap.servers": deployment.bootstrap, "partitioner": "murmur2_random", "log_level": 4})
    for number, request in enumerate(requests):
        topic = deployment.settings.requests_topic
        if number % 60 == 59:
            instance_id, fields = REGISTRATIONS[number // 60]
            value, headers = ENCODINGS[number % 2](instance_id, **fields)
            producer.produce(topic, value, instance_id, headers=list(headers))
        producer.produce(topic, harness.event(request), request.instance_id)
    assert producer.flush(60) == 0
    producer.close()


@pytest.mark.parametrize("snapshot_seconds", [0.2, 3600])
def test_a_registration_survives_a_kill(deploy: Callable[..., Deployment], snapshot_seconds: float) -> None:
    """From a snapshot that holds them, and from one before them or the start of the log."""
    deployment = deploy(batch_records=20, snapshot_seconds=snapshot_seconds, transaction_timeout_seconds=5)
    send(deployment, seed=81)
    for point in (CrashPoint.AFTER_COMMIT, CrashPoint.BEFORE_COMMIT):
        killed = deployment.serve(Role.LANES, 0, **{VARIABLE: f"{point}:5"})
        killed.process.wait(60)
        killed.close()
    deployment.serve(Role.LANES, 0)
    send(deployment, seed=82)
    deployment.await_processed(places_of(deployment.requests()))
    outputs = deployment.assert_exact()
    facts = [value or b"" for one in outputs.values() for _, value, _, _ in one.facts]
    assert sum(b'"instance_id":"chat-a"' in fact and b'"block_bytes":77,' in fact for fact in facts) > 20
    assert any(b'"instance_id":"new"' in fact for fact in facts)
    with Verification(deployment.settings, deployment.bootstrap, deployment.layout, deployment.registry) as audit:
        counts = [report.audited.counts for report in audit.partitions()]
    assert sum(one.ignored.get(Ignored.REGISTRATION, 0) for one in counts) == 9
    assert sum(one.dead_letters.get(Reason.REGISTRATION_NEEDS_RESET, 0) for one in counts) == 1
