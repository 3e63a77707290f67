"""Real traces as their own records on the topic, and as binary events, give the reference answers of /query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli_harness import litehit, serving
from tests.e2e.test_stream_reference import CAPACITY_GB, FINE, REQUESTS

REGISTRY = """
groups: [{name: all}]
instances: [{instance_id: "*", group: all, block_size_tokens: 512, block_bytes: 1048576}]
"""
WAYS = ("raw", "binary")


def test_the_reference_answers(mooncake_trace: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    with serving("--embedded", "--registry", "registry.yaml", cwd=tmp_path) as service:
        for trace in FINE:
            for way in WAYS:
                named = ("--format", "mooncake", "--instance", f"{trace}-{way}")
                litehit("publish", mooncake_trace(trace), *named, f"--{way}", "--embedded", cwd=tmp_path)
        answer = service.query_when(len(WAYS) * sum(REQUESTS.values()), CAPACITY_GB)
    assert {part["instance_id"]: part["total_hit_blocks"] for part in answer["instances"]} == {
        f"{trace}-{way}": hits for trace, hits in FINE.items() for way in WAYS
    }
