"""`litehit verify` and `dead-letters` on a running embedded broker, where batches may stand twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from litehit.registry import Registry
from service.embedded import EmbeddedBroker
from service.errors import BatchAborted, Difference
from service.lanes.producing import call_by_flag
from service.settings import Settings
from service.topics import TopicLayout
from service.verify.deployment import Verification
from tests import lanes_harness as harness
from tests.archiver_harness import RunningArchiver
from tests.cli_harness import litehit

Run = Callable[..., harness.RunningWorker]
COUNT = 300


def send(broker: EmbeddedBroker, settings: Settings, seed: int) -> list[tuple[int, int]]:
    records: list[tuple[str, bytes | None]] = []
    for number, request in enumerate(harness.make_requests(COUNT, seed)):
        records.append((request.instance_id, harness.event(request)))
        if number % 30 == 7:
            records.append((request.instance_id, b"{"))
    return harness.send(broker.bootstrap, settings.requests_topic, records)


def test_the_commands_find_a_running_deployment(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, run_worker: Run, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    options = ["--embedded", "--store", str(store)]
    with (
        run_worker() as worker,
        RunningArchiver(settings.model_copy(update={"segment_rows": 25}), broker.bootstrap, layout) as archiver,
    ):
        worker.wait_until(harness.caught_up(send(broker, settings, seed=61)))
        archiver.wait_until(lambda now: bool(now.partitions) and all(one.lag == 0 for one in now.partitions))
        verified = litehit("verify", *options, "--registry", str(tmp_path / "registry.yaml"), "--json")
        document = json.loads(verified.stdout)
        assert document["difference"] is None
        partitions = document["partitions"]
        assert sum(one["checked"]["facts"] for one in partitions) == COUNT
        assert sum(one["checked"]["rows"] for one in partitions) > COUNT // 2
        assert sum(one["checked"]["dead_letters"] for one in partitions) == COUNT // 30
        assert any(one["unchecked"] for one in partitions)  # not each number of facts is one of whole segments
        for one in partitions:
            lacks = one["checked"]["facts"] - one["checked"]["rows"]
            told = f"whether the facts from offset {one['checked']['rows']} on had a segment"
            assert len(one["unchecked"]) == (1 if lacks else 0)
            assert all(sentence.startswith(told) for sentence in one["unchecked"])

        replayed = litehit("dead-letters", "replay", *options)
        assert f"published {COUNT // 30} dead letters to {settings.requests_topic}: " in replayed.stdout.decode()
        worker.wait_until(lambda now: sum(lane.counts.consumed for lane in now.lanes) == COUNT + 2 * (COUNT // 30))
        shown = litehit("dead-letters", "show", *options).stdout.decode().splitlines()
        assert shown[-1] == f"20 of {2 * (COUNT // 30)} dead letters: 20 malformed-json"


def abort_second_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Let the second commit of a worker at least once fail, when its facts are delivered; tells how many there were."""
    commits = 0

    def sometimes(*arguments: Any) -> object:
        nonlocal commits
        commits += 1
        if commits == 2:
            raise BatchAborted("planted")
        return call_by_flag(*arguments)

    monkeypatch.setattr("service.lanes.at_least_once.call_by_flag", sometimes)
    return lambda: commits


def test_a_batch_that_came_twice_is_told_and_is_no_difference(
    broker: EmbeddedBroker,
    settings: Settings,
    layout: TopicLayout,
    run_worker: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits = abort_second_commit(monkeypatch)
    with run_worker() as worker:
        for seed in (62, 63):
            worker.wait_until(harness.caught_up(send(broker, settings, seed)))
        with Verification(settings, broker.bootstrap, layout, worker.known) as verification:
            reports = list(verification.partitions())
        assert commits() > 2
        assert sum(report.audited.repeated for report in reports) > 0
        assert sum(report.audited.facts for report in reports) == 2 * COUNT
        assert any("stand there again" in sentence for report in reports for sentence in report.unchecked)

        facts = harness.read_topic(broker.bootstrap, settings.facts_topic, layout.partitions)
        last = max(facts, key=lambda fact: fact.offset)
        forged = (last.value or b"").replace(b'"trace_id":"t', b'"trace_id":"T')
        headers: Any = list(last.headers)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 4})
        producer.produce(settings.facts_topic, forged, last.key, last.partition, headers=headers)
        assert producer.flush(30) == 0
        with (
            Verification(settings, broker.bootstrap, layout, worker.known) as verification,
            pytest.raises(Difference, match="of the value differs"),
        ):
            list(verification.partitions())


def test_several_facts_a_request_may_stand_twice(
    broker: EmbeddedBroker,
    settings: Settings,
    layout: TopicLayout,
    run_worker: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "variants.yaml"
    variant = "variants: [{name: twice, block_size_tokens: 8, block_bytes: 9}]"
    entry = f'{{instance_id: "*", group: g, block_size_tokens: 4, block_bytes: 5, {variant}}}'
    path.write_text(f"groups: [{{name: g}}]\ninstances: [{entry}]\n", encoding="utf-8")
    known = Registry.load(path)
    abort_second_commit(monkeypatch)
    with (
        harness.RunningWorker(settings, broker.bootstrap, layout, known) as worker,
        RunningArchiver(settings.model_copy(update={"segment_rows": 25}), broker.bootstrap, layout) as archiver,
    ):
        for seed in (64, 65):
            worker.wait_until(harness.caught_up(send(broker, settings, seed)))
        archiver.wait_until(lambda now: bool(now.partitions) and all(one.lag == 0 for one in now.partitions))
        with Verification(settings, broker.bootstrap, layout, known) as verification:
            audited = [report.audited for report in verification.partitions()]
    assert sum(one.repeated for one in audited) > 0
    assert sum(one.counts.facts for one in audited) == 2 * COUNT
    assert sum(one.counts.fact_records for one in audited) == sum(one.facts for one in audited) == 4 * COUNT
