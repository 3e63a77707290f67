"""Ids that are built and retries that are ignored, off a topic, counted on /metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from litehit.registry import Registry
from service.embedded import EmbeddedBroker
from service.publish_trace import publish_trace
from service.publisher import Publisher
from service.settings import Settings
from service.topics import TopicLayout
from service.trace_source import open_trace
from service.verify.deployment import Verification
from tests import lanes_harness as harness

PARTITIONS = 4


def event(model: str, tenant: str | None, trace_id: str, time: int, **changes: Any) -> bytes:
    fields = {
        "type": "request",
        "instance_id": "is not looked at",
        "model": model,
        "user": {"tenant": tenant},
        "trace_id": trace_id,
        "timestamp_ns": time,
        "block_keys": [1, 2],
        "input_token_len": 8,
    }
    return json.dumps(fields | changes).encode()


def metrics(worker: harness.RunningWorker, name: str, **labels: str) -> float:
    return sum(worker.metric(name, partition=str(partition), **labels) for partition in range(PARTITIONS))


def test_ids_are_built_and_retries_ignored_as_they_are_counted(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, tmp_path: Path
) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text(
        "groups: [{name: g, ttl_seconds: 60}]\n"
        "instances: [{instance_id: 'llama/*', group: g, block_size_tokens: 4, block_bytes: 1024}]\n",
        encoding="utf-8",
    )
    known = Registry.load(path)
    options = {"instance_template": "{model}/{user.tenant|none}", "repeats_window": 2}
    settings = settings.model_copy(update=options)
    records = [
        ("a", event("llama", "acme", "t1", 5)),
        ("a", event("llama", "other", "t1", 5)),  # the same trace, of another instance
        ("a", event("llama", "acme", "t1", 5)),  # a retry
        ("a", event("llama", None, "", 5)),
        ("a", event("llama", None, "", 4)),  # no trace: no retry; its time goes back
        ("a", b'{"type":"write"}'),
        ("a", event("llama", "acme", "t2", 6)),
        ("a", event("llama", "acme", "t3", 7)),
        ("a", event("llama", "acme", "t1", 8)),  # too long ago
        ("a", event("", "acme", "t4", 9)),
        ("a", event("qwen", "acme", "t4", 9)),
    ]
    with harness.RunningWorker(settings, broker.bootstrap, layout, known) as worker:
        worker.wait_until(harness.caught_up(harness.send(broker.bootstrap, settings.requests_topic, records)))
        assert worker.metric("litehit_split_instances") == 0
        places = harness.send(
            broker.bootstrap,
            settings.requests_topic,
            # Keys that the ids do not depend on: one instance lies on several partitions.
            [(f"key-{number}", event("llama", "acme", f"u{number}", 10 + number)) for number in range(20)],
        )
        status = worker.wait_until(harness.caught_up(places))
        assert status.split_instances == {"llama/acme"}
        assert metrics(worker, "litehit_lane_ignored_total", kind="repeat") == 1
        assert metrics(worker, "litehit_lane_ignored_total", kind="write") == 1
        assert metrics(worker, "litehit_lane_times_clamped_total") == 1
        assert metrics(worker, "litehit_lane_dead_letters_total", reason="instance-field-missing") == 1
        assert metrics(worker, "litehit_lane_dead_letters_total", reason="unknown-instance") == 1
        assert worker.metric("litehit_split_instances") == 1
    facts = [
        json.loads(record.value or b"")
        for record in harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS)
    ]
    found = [
        (fact["instance_id"], fact["trace_id"], fact["hit_curve"]) for fact in facts if fact["trace_id"][:1] != "u"
    ]
    assert found == [
        ("llama/acme", "t1", []),
        ("llama/other", "t1", []),
        ("llama/none", "", []),
        ("llama/none", "", [[1, 2]]),
        ("llama/acme", "t2", [[1, 2]]),
        ("llama/acme", "t3", [[1, 2]]),
        ("llama/acme", "t1", [[1, 2]]),
    ]
    # The audit builds the same ids and knows the same retries.
    with Verification(settings, broker.bootstrap, layout, known) as verification:
        reports = list(verification.partitions(lambda _: None))
    assert sum(report.audited.facts for report in reports) == len(facts) == 27
    assert sum(report.audited.dead_letters for report in reports) == 2


@pytest.mark.parametrize("way", ["event", "raw", "binary"])
def test_a_record_without_the_publishers_field_reaches_no_other_cache(
    way: str, broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, tmp_path: Path
) -> None:
    """The service has no template, and would take the instance that the record states."""
    path = tmp_path / "tenants.yaml"
    path.write_text(
        "groups: [{name: g}]\ninstances: [{instance_id: '*', group: g, block_size_tokens: 4, block_bytes: 1024}]\n",
        encoding="utf-8",
    )
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(
        b"\n".join(
            event("llama", tenant, f"t{time}", time, instance_id="stated") for time, tenant in enumerate("a-b")
        ).replace(b'{"tenant": "-"}', b"{}")
    )
    with open_trace(str(trace), "native", template="{model}/{user.tenant}") as opened:
        published = publish_trace(
            opened.windows(),
            Publisher(settings, broker.bootstrap),
            opened.trace_format,
            source=str(trace),
            raw=way == "raw",
            binary=way == "binary",
            instance_id="stated",
            named=True,
        )
    assert (published.records, published.unreadable) == (3, 1)
    with harness.RunningWorker(settings, broker.bootstrap, layout, Registry.load(path)) as worker:
        worker.wait_until(lambda status: sum(lane.next_offset or 0 for lane in status.lanes) == 3)
    facts = harness.read_topic(broker.bootstrap, settings.facts_topic, PARTITIONS)
    assert {fact.key for fact in facts} == {b"llama/a", b"llama/b"}
    (letter,) = harness.read_topic(broker.bootstrap, settings.dead_letters_topic, PARTITIONS)
    assert letter.reason == "instance-field-missing"
    assert "the header litehit-instance is empty" in letter.header("litehit-error")
