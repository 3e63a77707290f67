"""Segments are merged and removed under a running service: its answers stay the same, and nothing is missing."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.archive.open_store import open_store
from service.archive.segment import parse_path
from tests.cli_harness import RunningService, litehit, summaries

REGISTRY = """
groups: [{name: all, capacity_gb: [1]}]
instances:
  - {instance_id: one, group: all, block_size_tokens: 64, block_bytes: 1048576}
"""
REQUESTS = 1500
CAPACITIES = [0.05, 0.5, -1]
SMALL = {"LITEHIT_SEGMENT_ROWS": "20", "LITEHIT_FOLLOW_SECONDS": "0.1", "LITEHIT_UPKEEP_SECONDS": "0.2"}
MERGING = {**SMALL, "LITEHIT_COMPACT_AFTER_SECONDS": "1", "LITEHIT_COMPACT_PARTS": "3", "LITEHIT_COMPACT_ROWS": "256"}


@contextmanager
def serving(settings: dict[str, str], *arguments: str | Path) -> Iterator[RunningService]:
    service = RunningService(*arguments, settings=settings)
    try:
        yield service.ready()
    finally:
        service.close()


def numbers(service: RunningService, **window: str) -> Any:
    """What an answer counts, without how far its facts go."""
    answer = service.query(CAPACITIES, **window)
    assert "total" in answer, answer
    return answer["total"], answer["instances"]


def segments(store: Path) -> int:
    return sum(parse_path(file.path) is not None for file in open_store(str(store), for_writing=False).list("facts"))


def test_answers_stay_the_same_while_segments_are_merged_and_expire(tmp_path: Path) -> None:
    registry, trace, store = tmp_path / "registry.yaml", tmp_path / "trace.jsonl", tmp_path / "store"
    registry.write_text(REGISTRY, encoding="utf-8")
    litehit("generate", "--requests", str(REQUESTS), "--instance", "one", "--out", trace)
    litehit("replay", trace, "--format", "native", "--registry", registry, "--out", tmp_path)
    offline = litehit("query", tmp_path / "litehit_facts.csv", "--capacity-gb", *map(str, CAPACITIES)).stdout
    place = ("--embedded", "--store", store)
    with serving(MERGING, *place, "--registry", registry) as service:
        litehit("publish", trace, "--format", "native", *place)
        service.query_when(REQUESTS, CAPACITIES)
        times = [line for line in offline.splitlines() if b"timestamp_ns" in line]
        middle = {"from": str(time_of(times[200])), "to": str(time_of(times[-200]))}
        whole, window = numbers(service), numbers(service, **middle)

        def merged() -> bool:
            assert numbers(service) == whole
            assert numbers(service, **middle) == window
            return segments(store) < 20

        service.wait_until(merged)
        assert b"no difference" in litehit("verify", *place, "--registry", registry).stdout
        assert service.stop(signal.SIGTERM) == 0
    happened = Counter(event["event"] for event in service.events)
    assert happened["segment_published"] >= REQUESTS // 20
    assert happened["segments_merged"] >= REQUESTS // 256
    assert [event for event in service.events if event.get("level") == "error"] == []
    assert whole[0]["total_hit_blocks"] == summaries(offline)[""]["total_hit_blocks"]
    stored = litehit("query", store, "--capacity-gb", *map(str, CAPACITIES))
    assert stored.stdout == offline
    assert stored.stderr == b""

    with serving({**SMALL, "LITEHIT_RETENTION_SECONDS": "0.5"}, *place, "--registry", registry) as service:
        while service.wait_for_event("facts_expired")["begins_at_offset"] != REQUESTS:
            pass
        service.wait_until(lambda: numbers(service)[0]["requests"] == 0)
        litehit("publish", trace, "--format", "native", "--limit", "40", *place)
        while service.wait_for_event("facts_expired")["begins_at_offset"] != 40:
            pass
        verified = litehit("verify", *place, "--registry", registry).stdout
        assert b"the archive begins at offset 40: retention has removed 40 facts before it" in verified
        assert b"no difference" in verified
        assert service.stop(signal.SIGTERM) == 0
    emptied = litehit("query", store, "--capacity-gb", "-1", check=False)
    assert b"the store holds no facts" in emptied.stderr
    told = [line for line in emptied.stderr.decode().splitlines() if line.startswith("note: ")]
    assert any(f"retention has removed {REQUESTS} facts before it" in line for line in told), told


def time_of(line: bytes) -> int:
    return int(json.loads(line)["timestamp_ns"])
