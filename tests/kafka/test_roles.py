"""The roles as processes of their own on a real Kafka: one of lanes, one of archive and API."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.cli_harness import RunningService, litehit, summaries
from tests.kafka.broker import KafkaCluster

REGISTRY = """
groups: [{name: all}]
instances:
  - {instance_id: "*", group: all, block_size_tokens: 64, block_bytes: 1048576}
"""
REQUESTS = 500
CAPACITY_GB = [0.05, 0.5, -1]


def test_lanes_apart_from_archive_and_api(kafka: KafkaCluster, tmp_path: Path) -> None:
    registry, trace, store = (tmp_path / name for name in ("registry.yaml", "trace.jsonl", "store"))
    registry.write_text(REGISTRY, encoding="utf-8")
    litehit("generate", "--requests", str(REQUESTS), "--instance", "a", "--instance", "b", "--out", trace)
    topics = {f"LITEHIT_{name}_TOPIC": f"roles-{name}" for name in ("REQUESTS", "FACTS", "DEAD_LETTERS")}
    settings = topics | {"LITEHIT_BOOTSTRAP": kafka.bootstrap, "LITEHIT_REPLICATION_FACTOR": "1"}

    absent = litehit("serve", "--roles", "lanes", "--registry", registry, check=False, settings=settings)
    assert absent.returncode == 1
    assert b"kafka-topics.sh" in absent.stderr

    settings["LITEHIT_CREATE_TOPICS"] = "true"
    lanes = RunningService("--roles", "lanes", "--registry", registry, settings=settings)
    sidecar = RunningService("--roles", "archive,api", "--store", store, settings=settings)
    try:
        lanes.ready()  # by a probe of its own
        sidecar.ready()
        litehit("publish", trace, "--format", "native", settings=settings)
        online = sidecar.query_when(REQUESTS, CAPACITY_GB)
        assert lanes.stop(signal.SIGTERM) == 0
        assert sidecar.stop(signal.SIGTERM) == 0
    finally:
        lanes.close()
        sidecar.close()

    litehit("replay", trace, "--format", "native", "--registry", registry, "--out", tmp_path)
    asked = ("--capacity-gb", *map(repr, CAPACITY_GB))
    for facts in (tmp_path / "litehit_facts.csv", store):
        offline = summaries(litehit("query", facts, *asked).stdout)
        for part in online["instances"]:
            assert part["total_hit_blocks"] == offline[part["instance_id"]]["total_hit_blocks"]
            assert part["total_input_tokens"] == offline[part["instance_id"]]["total_input_tokens"]
        assert offline[""]["requests"] == REQUESTS
