"""A trace of any format gives the same facts replayed, published as request events, and published as it is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from litehit.facts_csv import read_facts
from litehit.registry import Registry
from litehit.replay import ReplayOptions, replay
from litehit.window import Window
from service.embedded import EmbeddedBroker
from service.format_names import LINE_FORMATS, FormatName
from service.formats.window_reader import window_reader
from service.publish_trace import publish_trace
from service.publisher import Publisher
from service.settings import Settings
from service.topics import TopicLayout
from service.trace_source import Trace, open_trace
from tests import lanes_harness as harness

SAMPLES = Path(__file__).parents[1] / "samples"
BLOCKS = {FormatName.BAILIAN: 16, FormatName.WEKA: 64}
WAYS = ("event", "raw")


def sample(name: FormatName) -> str:
    path = SAMPLES / name
    return str(path if path.is_dir() else path.with_suffix(".jsonl"))


@pytest.fixture
def known(tmp_path: Path) -> Registry:
    lines = ["groups: [{name: g}]", "instances:"]
    lines += [
        f"  - {{instance_id: {instance}, group: g, block_size_tokens: {BLOCKS.get(name, 512)}, block_bytes: 1024}}"
        for name in LINE_FORMATS
        for instance in (f"{name}-event", f"{name}-raw", name)
    ]
    path = tmp_path / "registry.yaml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return Registry.load(path)


def unnamed(trace: Trace) -> Iterable[Window]:
    """The same, without the instance that some samples name."""
    for text, numbers in trace.windows():
        stated = text.replace(b'"instance_id": "my-model", ', b"")
        yield Window(stated.replace(b'"source": "my-model", ', b""), numbers)


def replayed(name: FormatName, known: Registry, out: Path) -> list[tuple[Any, ...]]:
    with open_trace(sample(name), name) as trace:
        read = window_reader(trace.trace_format, name)
        done = replay(unnamed(trace), read, known, out, source=name, options=ReplayOptions(instance_id=name))
    with done.path.open("rb") as file:
        return [
            (fact.timestamp_ns, fact.input_token_len, [list(segment) for segment in fact.hit_curve])
            for batch in read_facts(file, "facts")
            for fact in batch
        ]


def test_the_topic_may_have_a_format_of_its_own(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, known: Registry, tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"requests_format": FormatName.MOONCAKE})
    for way in WAYS:
        with open_trace(sample(FormatName.MOONCAKE), "auto") as trace:
            publish_trace(
                trace.windows(),
                Publisher(settings, broker.bootstrap),
                trace.trace_format,
                source="trace",
                topic_format=settings.requests_format,
                raw=way == "raw",
                instance_id=f"mooncake-{way}",
            )
    with harness.RunningWorker(settings, broker.bootstrap, layout, known) as worker:
        worker.wait_until(lambda status: sum(lane.next_offset or 0 for lane in status.lanes) == 16)
    records = harness.read_topic(broker.bootstrap, settings.requests_topic, layout.partitions)
    assert {record.key: record.headers for record in records} == {
        b"mooncake-raw": (),
        b"mooncake-event": (("litehit-format", b"native"),),
    }
    assert len(harness.read_topic(broker.bootstrap, settings.facts_topic, layout.partitions)) == 16


def test_every_way_gives_the_same_facts(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, known: Registry, tmp_path: Path
) -> None:
    records = 0
    for name in LINE_FORMATS:
        for way in WAYS:
            with open_trace(sample(name), "auto") as trace:
                assert trace.trace_format.name == name
                sent = publish_trace(
                    unnamed(trace),
                    Publisher(settings, broker.bootstrap),
                    trace.trace_format,
                    source=name,
                    raw=way == "raw",
                    instance_id=f"{name}-{way}",
                )
            assert sent.unreadable == 0
            records += sent.records
    with harness.RunningWorker(settings, broker.bootstrap, layout, known) as worker:
        worker.wait_until(lambda status: sum(lane.next_offset or 0 for lane in status.lanes) == records)
    facts: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for record in harness.read_topic(broker.bootstrap, settings.facts_topic, layout.partitions):
        fact = json.loads(record.value or b"")
        facts[fact["instance_id"]].append((fact["timestamp_ns"], fact["input_token_len"], fact["hit_curve"]))
    assert not harness.read_topic(broker.bootstrap, settings.dead_letters_topic, layout.partitions)
    for name in LINE_FORMATS:
        expected = replayed(name, known, tmp_path / name)
        assert sum(bool(curve) for *_, curve in expected) > 3
        for way in WAYS:
            assert facts[f"{name}-{way}"] == expected, (name, way)
