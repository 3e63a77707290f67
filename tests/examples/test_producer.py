"""The tap of the examples: its events become answers, and a broker that is away costs its caller nothing."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from examples.chained_keys import chained_keys
from examples.producer import RequestTap
from tests.cli_harness import serving

REGISTRY = """
groups: [{name: all}]
instances: [{instance_id: my-model, group: all, block_size_tokens: 16, block_bytes: 1024}]
"""
START_NS = 1_750_000_000_000_000_000


def test_from_token_ids_to_an_answer(tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    with serving("--embedded", "--registry", "registry.yaml", cwd=tmp_path) as service:
        address = json.loads((tmp_path / "litehit-data" / "embedded-broker.json").read_text(encoding="utf-8"))
        tap = RequestTap(address["bootstrap"])
        # The second prompt goes on from the first one's two full blocks.
        for number, tokens in enumerate((range(40), range(64))):
            keys = chained_keys(tokens, 16, "my-model")
            tap.send("my-model", keys, len(tokens), START_NS + number, f"request-{number}")
        tap.close()
        assert (tap.delivered, tap.dropped) == (2, 0)
        total = service.query_when(2, [-1])["total"]
    assert total["total_input_tokens"] == 104
    assert total["total_hit_blocks"] == [2]


def test_a_broker_that_is_away(nobody: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.producer._FLUSH_SECONDS", 0.1)
    tap = RequestTap(nobody, queued=10)
    with caplog.at_level(logging.WARNING):
        for number in range(15):
            tap.send("my-model", [number], 16, START_NS)
        assert tap.dropped == 5
        assert "too many events wait for Kafka" in caplog.text
        tap.close()
    assert (tap.delivered, tap.dropped) == (0, 15)
    tap.send("my-model", [1], 16, START_NS)
    assert tap.dropped == 16


def test_what_json_can_not_write_is_dropped(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.producer._FLUSH_SECONDS", 0.1)
    tap = RequestTap(nobody)
    tap.send("my-model", [object()], 16, START_NS)  # type: ignore[list-item]
    tap.close()
    assert tap.dropped == 1
