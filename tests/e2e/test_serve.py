"""`litehit serve --embedded`: a stream counted while it runs, a clean end, and deaths that are told."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli_harness import RunningService, litehit, serving, summaries

REGISTRY = """
groups: [{name: all, capacity_gb: [1]}]
instances:
  - {instance_id: one, group: all, block_size_tokens: 64, block_bytes: 1048576}
"""
REQUESTS = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    trace = folder / "trace.jsonl"
    litehit("generate", "--requests", str(REQUESTS), "--instance", "one", "--out", trace)
    litehit("replay", trace, "--format", "native", "--registry", folder / "registry.yaml", "--out", folder)
    return folder


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_everything_archived(
    folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    place = ("--embedded", "--store", tmp_path / "store")
    with serving(*place, "--registry", folder / "registry.yaml") as service:
        litehit("publish", folder / "trace.jsonl", "--format", "native", *place)
        # The stop comes at once, while facts may still be on their way to the archive.
        assert service.stop(number) == 0
    stopped = [event["role"] for event in service.events if event["event"] == "role_stopped"]
    assert stopped == ["lanes", "archive", "upkeep", "index", "api"]
    assert not (tmp_path / "store" / "embedded-broker.json").exists()
    # What the lanes had taken is in the store, and all of it is right.
    archived = summaries(litehit("query", tmp_path / "store", "--capacity-gb", "0.05", "-1").stdout)[""]
    offline = litehit("query", folder / "litehit_facts.csv", "--capacity-gb", "0.05", "-1").stdout
    rows = [json.loads(line) for line in offline.splitlines()][: archived["requests"]]
    hits = [sum(row["hit_blocks"][slot] for row in rows) for slot in (0, 1)]
    assert archived["total_hit_blocks"] == hits


def test_what_was_counted_before_is_counted_after_a_restart(folder: Path, tmp_path: Path) -> None:
    place = ("--embedded", "--store", tmp_path / "store")
    with serving(*place, "--registry", folder / "registry.yaml") as service:
        litehit("publish", folder / "trace.jsonl", "--format", "native", *place)
        first = service.query_when(REQUESTS, [0.05, -1])
        assert service.stop(signal.SIGTERM) == 0
    with serving("--roles", "api", "--store", tmp_path / "store") as service:
        again = service.query_when(REQUESTS, [0.05, -1])
    assert again["total"] == first["total"]
    assert again["instances"] == first["instances"]


def test_bad_records_are_told_by_publish_and_good_ones_are_counted(folder: Path, tmp_path: Path) -> None:
    place = ("--embedded", "--store", tmp_path / "store")
    good = (folder / "trace.jsonl").read_bytes().splitlines()
    bad = [b"{", b'{"type":"request","instance_id":"one","timestamp_ns":1,"block_keys":[1.5]}']
    with serving(*place, "--registry", folder / "registry.yaml") as service:
        lines = b"\n".join([good[0], *bad, *good[1:]])
        done = litehit("publish", "-", "--format", "native", *place, stdin=lines)
        assert f"published {REQUESTS + 2} records".encode() in done.stdout
        assert b"warning: 2 of them" in done.stderr
        assert b"line 2" in done.stderr
        answer = service.query_when(REQUESTS, [-1])
    offline = litehit("query", folder / "litehit_facts.csv", "--capacity-gb", "-1").stdout
    assert answer["total"]["total_hit_blocks"] == summaries(offline)[""]["total_hit_blocks"]


def test_a_start_tells_what_the_one_before_took_with_it(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    place = ("--embedded", "--store", store)
    arguments = (*place, "--registry", folder / "registry.yaml")
    with serving(*arguments) as service:
        assert not service.saw("caches_begin_empty")
        litehit("publish", folder / "trace.jsonl", "--format", "native", *place)
        service.query_when(REQUESTS, [-1])
        service.wait_for_event("snapshot_written")
        service.process.kill()
        service.process.wait()
    assert any(path.is_file() for path in (store / "snapshots").rglob("*"))
    with serving(*arguments) as service:
        assert service.saw("embedded_broker_died")
        litehit("publish", folder / "trace.jsonl", "--format", "native", *place)
        service.query_when(REQUESTS, [-1])
        assert service.stop(signal.SIGTERM) == 0
        assert not service.saw("caches_begin_empty")
    assert not any(path.is_file() for path in (store / "snapshots").rglob("*"))
    with serving(*arguments) as service:
        assert service.saw("caches_begin_empty")
        assert not service.saw("embedded_broker_died")


def test_publish_ends_where_a_lane_has_stopped(folder: Path, tmp_path: Path) -> None:
    """On a broker that keeps little it waits for the lanes, and this one goes on no more by itself."""
    place = ("--embedded", "--store", tmp_path / "store")
    good = (folder / "trace.jsonl").read_bytes().splitlines()[0]
    fields = {"type": "request", "timestamp_ns": 1, "block_keys": list(range(10_000, 11_000))}
    bad = json.dumps(fields | {"instance_id": "nobody"}).encode()
    with serving(*place, "--registry", folder / "registry.yaml"):
        lines = b"\n".join([good, *[bad] * 3000])
        done = litehit("publish", "-", "--format", "native", *place, stdin=lines, check=False)
    assert done.returncode == 1
    assert b"the lanes take no more: partition" in done.stderr
    assert b"dead letters" in done.stderr
    assert b"publish again into a new store" in done.stderr


def test_a_port_that_is_taken_ends_it_with_one_line(folder: Path, tmp_path: Path) -> None:
    with serving("--roles", "api", "--store", tmp_path) as service:
        port = service.url.rpartition(":")[2]
        done = litehit("serve", "--roles", "api", "--store", tmp_path, "--port", port, check=False)
    assert done.returncode == 1
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("error: can't listen on")
    assert port in last


def test_two_on_one_store_are_refused(folder: Path, tmp_path: Path) -> None:
    place = ("--embedded", "--store", tmp_path / "store", "--registry", folder / "registry.yaml")
    with serving(*place):
        done = litehit("serve", *place, "--port", "0", check=False)
    assert done.returncode == 1
    assert b"already runs an embedded broker" in done.stderr


def test_a_broken_registry_ends_it_with_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "registry.yaml"
    broken.write_text("groups: [{name: a}]\ninstances:\n  - {instance_id: one, group: b}\n", encoding="utf-8")
    service = RunningService("--embedded", "--store", tmp_path / "store", "--registry", broken)
    try:
        assert service.process.wait(60) == 1
        text = service.wait_for_event("text")["text"]
    finally:
        service.close()
    assert text.startswith("error: ")
    assert "registry.yaml" in text
