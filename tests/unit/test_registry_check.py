"""`litehit registry check`: the table, why an id resolves as it does, warnings, and the comparison with a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litehit.errors import RegistryError, UnknownInstance
from litehit.registry import Registry
from service.archive.open_store import open_store
from service.cli.app import app
from service.errors import RegistryNotApplicable
from service.lanes.committed import RequestsTopic
from service.lanes.snapshots import Snapshots
from tests import lanes_harness as harness
from tests import snapshots_made as made
from tests.registration_events import in_json

FILE = """
groups:
  - {name: chat, capacity_gb: [8, 0.0001, 8], ttl_seconds: 1.5}
  - {name: idle}
instances:
  - {instance_id: "qwen*", group: chat, block_size_tokens: 512, location_specs: {tp0: 1000000, tp1: 48576}}
  - {instance_id: "qwen3?*", group: chat, block_size_tokens: 512, trace_block_size_tokens: 64, block_bytes: 7}
  - {instance_id: "qwen3-*", group: chat, block_size_tokens: 512, block_bytes: 7}
  - {instance_id: "qwen3-a", group: chat, block_size_tokens: 8, block_bytes: 9, variants: [{name: v, block_bytes: 3}]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "registry.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[str, BaseException | None]:
    result = CliRunner().invoke(app, ["registry", "check", *map(str, arguments)])
    return result.stdout, result.exception


def test_the_document_holds_what_is_registered(file: Path) -> None:
    output, error = run(file, "--json")
    assert error is None
    document = json.loads(output)
    assert [one["instance_id"] for one in document["instances"]] == [
        "qwen*",
        "qwen3?*",
        "qwen3-*",
        "qwen3-a",
        "qwen3-a@v",
    ]
    assert document["instances"][0] == {
        "instance_id": "qwen*",
        "group": "chat",
        "block_size_tokens": 512,
        "trace_block_size_tokens": 512,
        "block_bytes": 1048576,
        "enable_prefix_hash": False,
        "ttl_seconds": 1.5,
        "capacity_gb": [8.0, 0.0001, 8.0],
    }
    assert document["snapshots"] is None
    assert document["warnings"] == [
        "group chat has the slot 8 GB 2 times; one is enough",
        "group idle has no instances; name it in an entry, or remove it",
        "glob qwen3-* is never used: qwen3?* wins and covers all that it does; remove one of the two",
        "qwen*: the slot 0.0001 GB holds no block of 1048576 bytes, so it never hits; give a larger one",
    ]


def test_the_table_and_why_an_id_resolves_so(file: Path) -> None:
    ids = ("qwen3-a", "qwen3-b", "qwen2", "qwen3-a@v")
    output, error = run(file, *(word for one in ids for word in ("--instance", one)))
    assert error is None
    assert "1048576" in output
    assert "qwen3-a: exact id qwen3-a, which wins over qwen3?*, qwen3-*, qwen*: group chat, blocks of 8" in output
    assert "qwen3-b: glob qwen3?*, which wins over qwen3-*, qwen*: group chat" in output
    assert "qwen2: glob qwen*: group chat, blocks of 512 tokens and 1048576 bytes" in output
    assert "qwen3-a@v: variant of qwen3-a; requests are sent to that: group chat, blocks of 8 tokens and 3" in output
    assert "warning: group idle has no instances" in output


def test_what_fails(file: Path) -> None:
    assert isinstance(run(file, "--instance", "other")[1], UnknownInstance)
    file.write_text(FILE.replace("block_bytes: 7", "block_bites: 7"), encoding="utf-8")
    assert isinstance(run(file)[1], RegistryError)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """With a snapshot of a lane that knows a registration."""
    folder = tmp_path / "store"
    topic = RequestsTopic("litehit.requests", "generation", 4)
    lane = made.new_lane(harness.registry(tmp_path))
    lane.process(harness.read(made.records_of(harness.make_requests(60, seed=31))))
    record = made.records_of(harness.make_requests(1, seed=1), first=60)[0]
    value, _ = in_json("chat-a", block_bytes=5)
    lane.process(harness.read([record._replace(value=value)]))
    Snapshots(open_store(str(folder)), topic).write(made.snapshot_of(lane, topic))
    return folder


def check(tmp_path: Path, store: Path, text: str) -> tuple[str, BaseException | None]:
    path = tmp_path / "new.yaml"
    path.write_text(text, encoding="utf-8")
    by_option = run(path, "--store", store)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LITEHIT_STORE", str(store))
        assert repr(run(path)) == repr(by_option)
    return by_option


def test_a_charge_and_slots_would_be_applied_but_for_what_the_stream_said(tmp_path: Path, store: Path) -> None:
    output, error = check(tmp_path, store, harness.REGISTRY.replace("1024", "512").replace("[1]", "[2]"))
    assert error is None
    lines = [line.partition(": ")[2] for line in output.splitlines() if line.startswith("snapshots/")]
    assert "applied: chat-b has block_bytes 1024 there and 512 now" in lines
    assert "applied: chat-a has capacity_gb [1.0] there and [2.0] now" in lines
    assert not any("chat-a has block_bytes" in line for line in lines)


def test_what_a_cache_depends_on_would_be_refused(tmp_path: Path, store: Path) -> None:
    output, error = check(tmp_path, store, harness.REGISTRY.replace("ttl_seconds: 30", "ttl_seconds: 31"))
    assert "refused: agent-a has ttl_seconds 30 there and 31 now" in output
    assert isinstance(error, RegistryNotApplicable)
    assert "new.yaml: lanes would stop" in str(error)


def test_the_same_file_changes_nothing_and_a_gap_in_it_is_told(tmp_path: Path, store: Path) -> None:
    assert "nothing changes" in check(tmp_path, store, harness.REGISTRY)[0]
    output, error = check(tmp_path, store, harness.REGISTRY.replace("agent-*", "other-*"))
    assert error is None
    assert "agent-a is registered no more: its requests would be refused" in output


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no snapshots to compare with" in check(tmp_path, tmp_path / "empty", harness.REGISTRY)[0]


def test_the_registry_lists_its_configs_in_order(file: Path) -> None:
    assert Registry.load(file).globs_matching("qwen3-a") == ("qwen3?*", "qwen3-*", "qwen*")


def test_what_is_new_beside_warm_caches_is_refused_with_what_lets_it_begin(tmp_path: Path, store: Path) -> None:
    variant = ", variants: [{name: short, ttl_seconds: 9}]"
    output, error = check(tmp_path, store, harness.REGISTRY.replace("block_bytes: 1024", f"block_bytes: 1024{variant}"))
    assert "refused: chat-a@short has no cache there and would begin cold" in output
    assert isinstance(error, RegistryNotApplicable)
    assert "let it begin empty with `litehit lanes reset --partition P --to snapshot`" in str(error)
    assert "reset: true" not in str(error)
