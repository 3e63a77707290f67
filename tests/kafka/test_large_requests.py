"""The longest real requests, and far longer ones, through Kafka to an answer; what a topic refuses is explained."""

from __future__ import annotations

import json
from pathlib import Path

from service.settings import Settings
from service.topics import TopicLayout
from tests.cli_harness import RunningService, litehit
from tests.kafka.test_dead_letters import limit_messages

REGISTRY = """
groups: [{name: all}]
instances: [{instance_id: "*", group: all, block_size_tokens: 16, block_bytes: 1024}]
"""


def write_trace(folder: Path, name: str, keys: int) -> str:
    """A request and the same again, of keys as long as they get."""
    event = {"type": "request", "instance_id": name, "timestamp_ns": 1, "input_token_len": 16 * keys}
    line = json.dumps({**event, "block_keys": [2**63 - 1 - key for key in range(keys)]})
    assert len(line) > 21 * keys
    (folder / f"{name}.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    return f"{name}.jsonl"


def test_large_requests_pass_once_their_topic_takes_them(
    settings: Settings, layout: TopicLayout, tmp_path: Path
) -> None:
    (tmp_path / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    real, larger, binary = (
        write_trace(tmp_path, name, keys) for name, keys in (("real", 14_000), ("larger", 100_000), ("bin", 100_000))
    )
    named = ("bootstrap", "requests_topic", "facts_topic", "dead_letters_topic", "group_id", "transactional_id")
    env = {f"LITEHIT_{name.upper()}": str(getattr(settings, name)) for name in named}
    service = RunningService("--registry", "registry.yaml", "--store", "store", cwd=tmp_path, settings=env)
    try:
        service.ready()
        litehit("publish", real, "--format", "native", cwd=tmp_path, settings=env)
        litehit("publish", binary, "--format", "native", "--binary", cwd=tmp_path, settings=env)
        service.query_when(4, [-1])

        refused = litehit("publish", larger, "--format", "native", cwd=tmp_path, settings=env, check=False)
        said = refused.stderr.decode()
        assert refused.returncode == 1
        assert f"{settings.requests_topic} refused a record of 2,000," in said
        assert f"--entity-name {settings.requests_topic} --add-config max.message.bytes=4" in said
        assert "or publish with --binary" in said

        limit_messages(settings, settings.requests_topic, 4 * 2**20)
        litehit("publish", larger, "--format", "native", cwd=tmp_path, settings=env)
        instances = service.query_when(6, [-1])["instances"]
    finally:
        service.close()
    assert {one["instance_id"]: one["total_hit_blocks"] for one in instances} == {
        "bin": [100_000],
        "larger": [100_000],
        "real": [14_000],
    }
    assert [one["hit_rates"] for one in instances] == [[0.5]] * 3
