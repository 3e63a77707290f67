"""Registrations through a running service's lanes: facts, status, metrics, counters, and the audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from schemas.dead_letter import Reason
from service.embedded import EmbeddedBroker
from service.lanes.counts import Ignored
from service.settings import Settings
from service.topics import TopicLayout
from service.verify.deployment import Verification
from tests import lanes_harness as harness
from tests.registration_events import in_json, in_protobuf

Run = Callable[..., harness.RunningWorker]


def test_from_its_record_on_the_stream_says_how_an_instance_is_analysed(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, run_worker: Run, tmp_path: Path
) -> None:
    requests = harness.make_requests(90, seed=91, instances=("chat-a",))
    parts = [[harness.event(one) for one in requests[low : low + 30]] for low in (0, 30, 60)]
    changed, _ = in_json("chat-a", block_bytes=77, capacity_gb=[-1])
    refused, _ = in_json("chat-a", ttl_seconds=1)
    reset, binary = in_protobuf("chat-a", ttl_seconds=1, reset=True)
    values = [*parts[0], changed, *parts[1], refused, reset, *parts[2]]
    headers = [{name: (value or b"").decode() for name, value in (binary if one is reset else ())} for one in values]
    with run_worker() as worker:
        places = harness.send(broker.bootstrap, settings.requests_topic, [("chat-a", one) for one in values], headers)
        worker.wait_until(harness.caught_up(places))
        lane = next(one for one in worker.worker.status().lanes if one.partition == places[0][0])
        assert lane.counts.facts == 90
        assert lane.counts.ignored == {Ignored.REGISTRATION: 2}
        assert lane.counts.dead_letters == {Reason.REGISTRATION_NEEDS_RESET: 1}
        (instance,) = lane.instances
        assert (instance.config.block_bytes, instance.config.ttl_ns, instance.config.group) == (77, 10**9, "plain")
        facts = [
            json.loads(one.value or b"")
            for one in harness.read_topic(broker.bootstrap, settings.facts_topic, layout.partitions)
        ]
        assert [fact["block_bytes"] for fact in facts] == [1024] * 30 + [77] * 60
        hits = [sum(run for _, run in fact["hit_curve"]) for fact in facts]
        assert hits[60] == 0
        assert instance.totals.requests == 90
        assert instance.totals.hit_blocks == [sum(hits)]  # of the registered slot, over facts before it too
        with Verification(settings, broker.bootstrap, layout, harness.registry(tmp_path)) as audit:
            reports = list(audit.partitions())
        assert sum(report.audited.facts for report in reports) == 90
