"""Several facts a request, on a real Kafka: killed amid them, archived, audited; and all requests pooled into one."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from litehit.errors import OptionError
from litehit.registry import Registry
from litehit.request import Request
from service.crash_points import CrashPoint
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from service.verify.deployment import Verification
from tests import lanes_harness as harness
from tests.archiver_harness import RunningArchiver
from tests.cli_harness import RunningService
from tests.kafka.test_exactly_once import committed_facts, publish

Run = Callable[..., harness.RunningWorker]

REGISTRY = """
groups: [{name: any, ttl_seconds: 30}]
instances:
  - instance_id: "*"
    group: any
    block_size_tokens: 4
    block_bytes: 1024
    variants:
      - {name: coarse, block_size_tokens: 8, block_bytes: 2048}
      - {name: for-ever, ttl_seconds: 0}
"""
NAMES = ("", "@coarse", "@for-ever")


@pytest.fixture
def known(tmp_path: Path) -> Registry:
    path = tmp_path / "registry.yaml"
    path.write_text(REGISTRY, encoding="utf-8")
    return Registry.load(path)


def straight(requests: list[Request], known: Registry) -> dict[str, list[bytes]]:
    """The facts of each instance and variant, each alone."""
    return {
        instance_id: facts
        for name in NAMES
        for instance_id, facts in harness.straight_facts(
            [one._replace(instance_id=one.instance_id + name) for one in requests], known
        ).items()
    }


def audit(settings: Settings, layout: TopicLayout, known: Registry, facts: int) -> None:
    """Archive all facts, and hold everything against what the requests give."""
    assert settings.bootstrap is not None
    archiving = settings.model_copy(
        update={"archive_group_id": f"archive-{settings.group_id}", "segment_rows": 31}  # amid a request's facts
    )
    with RunningArchiver(archiving, settings.bootstrap, layout) as archiver:
        archiver.wait_until(
            lambda now: len(now.partitions) == layout.partitions and all(one.lag == 0 for one in now.partitions)
        )
    with Verification(archiving, settings.bootstrap, layout, known) as verification:
        reports = list(verification.partitions())
    assert [report.unchecked for report in reports] == [()] * layout.partitions
    assert sum(report.audited.facts for report in reports) == sum(report.audited.rows for report in reports) == facts


@pytest.mark.parametrize("point", [CrashPoint.MID_TRANSACTION, CrashPoint.AFTER_COMMIT])
def test_a_kill_amid_the_facts_changes_no_byte(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, tmp_path: Path, point: CrashPoint
) -> None:
    requests = harness.make_requests(400, seed=91)
    places = publish(settings, requests)
    variables = {
        f"LITEHIT_{name.upper()}": str(getattr(settings, name))
        for name in ("requests_topic", "facts_topic", "dead_letters_topic", "group_id", "transactional_id")
    }
    variables |= {"LITEHIT_BATCH_RECORDS": "50", "LITEHIT_CRASH_POINT": f"{point}:3"}
    options = ["--roles", "lanes", "--bootstrap", str(settings.bootstrap), "--store", settings.store]
    service = RunningService(*options, "--registry", tmp_path / "registry.yaml", settings=variables)
    try:
        assert service.process.wait(60) == -signal.SIGKILL
    finally:
        service.close()
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(places))
    by_instance: dict[str, list[bytes | None]] = {}
    by_source: dict[str, list[bytes]] = {}
    for fact in committed_facts(settings, layout.partitions):
        by_instance.setdefault((fact.key or b"").decode(), []).append(fact.value)
        by_source.setdefault(fact.source, []).append(fact.key or b"")
    assert by_instance == straight(requests, known)
    assert len(by_source) == len(requests)
    assert all(keys == [keys[0] + name.encode() for name in NAMES] for keys in by_source.values())
    audit(settings, layout, known, len(NAMES) * len(requests))


def test_all_requests_are_pooled_into_one_instance_where_there_is_one_partition(
    settings: Settings, known: Registry
) -> None:
    assert settings.bootstrap is not None
    pooling = settings.model_copy(update={"partitions": 1, "override_instance_id": "pool"})
    layout = prepare_topics(pooling, settings.bootstrap)
    requests = harness.make_requests(200, seed=92)
    for part in (requests[:100], requests[100:]):  # the second goes on warm, from a snapshot
        with harness.RunningWorker(pooling, settings.bootstrap, layout, known) as worker:
            worker.wait_until(harness.caught_up(publish(pooling, part)))
    by_instance: dict[str, list[bytes | None]] = {}
    for fact in committed_facts(pooling, 1):
        by_instance.setdefault((fact.key or b"").decode(), []).append(fact.value)
    assert by_instance == straight([one._replace(instance_id="pool") for one in requests], known)
    audit(pooling, layout, known, len(NAMES) * len(requests))


def test_several_partitions_are_refused_before_anything_is_read(
    settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    with pytest.raises(OptionError, match="needs a requests topic of one partition"):
        run_worker(fanout_all_instances=True)
