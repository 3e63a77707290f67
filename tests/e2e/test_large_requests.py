"""The longest real requests, and far longer ones, from a trace to an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli_harness import litehit, serving

REGISTRY = """
groups: [{name: all}]
instances: [{instance_id: my-model, group: all, block_size_tokens: 16, block_bytes: 1024}]
"""


@pytest.mark.parametrize("keys", [14_000, 100_000])
def test_a_large_request_passes(keys: int, tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    event = {"type": "request", "instance_id": "my-model", "timestamp_ns": 1, "input_token_len": 16 * keys}
    line = json.dumps({**event, "block_keys": [2**63 - 1 - key for key in range(keys)]})
    assert len(line) > 21 * keys
    (tmp_path / "trace.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    with serving("--embedded", "--registry", "registry.yaml", cwd=tmp_path) as service:
        litehit("publish", "trace.jsonl", "--format", "native", "--embedded", cwd=tmp_path)
        total = service.query_when(2, [-1])["total"]
    assert total["total_hit_blocks"] == [keys]
    assert total["total_input_tokens"] == 2 * 16 * keys
