"""Real traces through the running service: /query gives the reference answers, and those of the offline replay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cli_harness import RunningService, litehit, serving, summaries

BLOCK_BYTES = 1_048_576
CAPACITY_BLOCKS = (15, 253, 1013, 4053, 8106, 16213, 32427, 64854, -1)
# Hit blocks of the whole traces at those capacities.
FINE = {
    "conversation": [12030, 12096, 13020, 26252, 53887, 77790, 97541, 103775, 105592],
    "synthetic": [178, 2947, 10441, 30686, 46890, 65740, 77121, 77740, 77740],
}
# Of the conversation analysed at 1024 tokens, where known.
COARSE_CONVERSATION = {4053: 21125, 16213: 43704, -1: 48021}
CEILING_RATE = {"conversation": 0.373379906, "synthetic": 0.650430950}
REQUESTS = {"conversation": 12_031, "synthetic": 3_993}
INPUT_TOKENS = {"conversation": 144_793_823}

# instance id -> trace. Two of these ids share a partition of four, which the test checks.
INSTANCES = {
    "conversation": "conversation",
    "synthetic": "synthetic",
    "conversation-1024": "conversation",
    "synthetic-1024": "synthetic",
}
REGISTRY = f"""
groups: [{{name: all, capacity_gb: [1]}}]
instances:
  - instance_id: "*-1024"
    group: all
    block_size_tokens: 1024
    trace_block_size_tokens: 512
    block_bytes: {BLOCK_BYTES}
  - {{instance_id: conversation, group: all, block_size_tokens: 512, block_bytes: {BLOCK_BYTES}}}
  - {{instance_id: synthetic, group: all, block_size_tokens: 512, block_bytes: {BLOCK_BYTES}}}
"""
CAPACITY_GB = [blocks * BLOCK_BYTES / 2**30 for blocks in CAPACITY_BLOCKS]
FIELDS = ("requests", "total_input_tokens", "total_hit_blocks", "total_hit_tokens", "hit_rates")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "registry.yaml"
    path.write_text(REGISTRY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def offline(registry: Path, mooncake_trace: Callable[[str], Path]) -> dict[str, Any]:
    """The offline answers of each instance."""
    answers = {}
    for instance, trace in INSTANCES.items():
        out = registry.parent / instance
        source = ("--format", "mooncake", "--registry", registry, "--instance", instance)
        litehit("replay", mooncake_trace(trace), *source, "--out", out)
        capacities = [repr(capacity) for capacity in CAPACITY_GB]
        lines = litehit("query", out / "litehit_facts.csv", "--capacity-gb", *capacities).stdout
        answers[instance] = summaries(lines)[instance]
    return answers


@pytest.fixture(scope="module")
def streamed(registry: Path, mooncake_trace: Callable[[str], Path]) -> Any:
    """The answer of /query after all four went through the topic, and the partitions that hold their facts."""
    store = registry.parent / "store"
    place = ("--embedded", "--store", store)
    with serving(*place, "--registry", registry) as service:

        def publish(instance: str, trace: Path) -> None:
            litehit("publish", trace, "--format", "mooncake", "--instance", instance, *place)

        # All at once, so that instances of one partition interleave.
        with ThreadPoolExecutor(len(INSTANCES)) as pool:
            list(pool.map(publish, INSTANCES, map(mooncake_trace, INSTANCES.values())))
        answer = service.query_when(sum(REQUESTS[trace] for trace in INSTANCES.values()), CAPACITY_GB)
        answer["partitions"] = _partitions_of_instances(service, store)
    return answer


def _partitions_of_instances(service: RunningService, store: Path) -> dict[str, int]:
    """Where the facts of each instance are, as the end of each facts partition shows them."""
    bootstrap = json.loads((store / "embedded-broker.json").read_text(encoding="utf-8"))["bootstrap"]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    topic = "litehit.facts"
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(4)])
    found: dict[str, int] = {}
    unfinished = {0, 1, 2, 3}
    while unfinished:
        message = consumer.poll(30)
        assert message is not None
        partition = message.partition()
        assert partition is not None
        if message.error() is not None:
            unfinished.discard(partition)
            continue
        key = message.key()
        assert key is not None
        assert found.setdefault(key.decode(), partition) == partition
    consumer.close()
    return found


def _by_instance(answer: Any) -> dict[str, Any]:
    return {part["instance_id"]: part for part in answer["instances"]}


def test_two_of_the_instances_share_a_partition(streamed: Any) -> None:
    assert streamed["partitions"].keys() == INSTANCES.keys()
    assert sorted(Counter(streamed["partitions"].values()).values()) == [1, 1, 2]


@pytest.mark.parametrize("instance", INSTANCES)
def test_the_stream_equals_the_offline_replay(instance: str, streamed: Any, offline: dict[str, Any]) -> None:
    online = _by_instance(streamed)[instance]
    assert {name: online[name] for name in FIELDS} == {name: offline[instance][name] for name in FIELDS}


@pytest.mark.parametrize("instance", FINE)
def test_the_reference_answers(instance: str, streamed: Any) -> None:
    online = _by_instance(streamed)[instance]
    assert online["total_hit_blocks"] == FINE[instance]
    assert online["requests"] == REQUESTS[instance]
    assert online["total_input_tokens"] == INPUT_TOKENS.get(instance, online["total_input_tokens"])
    assert online["hit_rates"][-1] == pytest.approx(CEILING_RATE[instance], abs=5e-10)
    assert online["ceiling"]["hit_blocks"] == FINE[instance][-1]
    assert online["ceiling"]["hit_rate"] == online["hit_rates"][-1]


def test_the_reference_answers_at_twice_the_block(streamed: Any) -> None:
    hits = dict(zip(CAPACITY_BLOCKS, _by_instance(streamed)["conversation-1024"]["total_hit_blocks"], strict=True))
    assert {blocks: hits[blocks] for blocks in COARSE_CONVERSATION} == COARSE_CONVERSATION


def test_the_total_is_the_sum(streamed: Any) -> None:
    parts = streamed["instances"]
    total = streamed["total"]
    assert total["total_hit_blocks"] == [
        sum(column) for column in zip(*(p["total_hit_blocks"] for p in parts), strict=True)
    ]
    assert total["total_hit_tokens"] == [
        sum(column) for column in zip(*(p["total_hit_tokens"] for p in parts), strict=True)
    ]
    assert total["hit_rates"] == [tokens / total["total_input_tokens"] for tokens in total["total_hit_tokens"]]
