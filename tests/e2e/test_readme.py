"""What the README shows runs as it stands there, but for addresses and names of files."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.cli_harness import RunningService, litehit, serving, summaries
from tests.readme import block

REQUESTS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's registry and a trace lie."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "registry.yaml").write_text(block("registry"), encoding="utf-8")
    shape = ("--instance", "my-model", "--block-size-tokens", "512")
    litehit("generate", "--requests", str(REQUESTS), *shape, "--out", folder / "trace.jsonl")
    return folder


@pytest.fixture(scope="module")
def offline(folder: Path) -> bytes:
    """What the README's offline commands print last."""
    output = b""
    for line in block("offline").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "litehit"
        output = litehit(*arguments, cwd=folder).stdout
    return output


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[RunningService]:
    """The README's embedded service, with the trace published."""
    serve, publish, curl = block("embedded").splitlines()
    assert curl.startswith("curl ")
    program, command, *options = shlex.split(serve)
    assert (program, command) == ("litehit", "serve")
    with serving(*options, cwd=folder) as running:
        program, *arguments = shlex.split(publish)
        assert program == "litehit"
        litehit(*arguments, cwd=folder)
        yield running


def test_the_offline_commands(offline: bytes) -> None:
    total = summaries(offline)[""]
    assert total["requests"] == REQUESTS
    assert total["capacity_gb"] == [8, 64, -1]


def test_the_service_answers_like_the_offline_commands(service: RunningService, offline: bytes) -> None:
    url = re.search(r"curl '(.*)'", block("embedded"))
    assert url is not None
    path = url[1].removeprefix("http://127.0.0.1:8080")
    total = service.wait_until(lambda: (t := service.get(path)["total"])["requests"] == REQUESTS and t)
    assert total["total_hit_blocks"] == summaries(offline)[""]["total_hit_blocks"][:2]


def test_the_curve_commands(folder: Path, offline: bytes) -> None:
    table, files = [shlex.split(line)[1:] for line in block("curve").splitlines()]
    assert f"{REQUESTS} requests" in litehit(*table, cwd=folder).stdout.decode()
    litehit(*files, cwd=folder)
    lines = (folder / "curve.csv").read_text(encoding="utf-8").splitlines()
    assert float(lines[-1].split(",")[5]) == summaries(offline)[""]["hit_rates"][-1]
    assert (folder / "curve.png").stat().st_size > 10_000


def test_the_consumer_reads_every_fact(service: RunningService, folder: Path, offline: bytes) -> None:
    service.query_when(REQUESTS, [1])
    address = json.loads((folder / "litehit-data" / "embedded-broker.json").read_text(encoding="utf-8"))
    code = block("consumer")
    assert len(code.split("\n\n", 1)[1].splitlines()) + 1 == 5
    changed = code.replace("localhost:9092", address["bootstrap"])
    assert changed.count(address["bootstrap"]) == 1
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(changed, {})
    assert len(printed.getvalue().splitlines()) == REQUESTS
    assert '"hit_curve":[[' in printed.getvalue()


def test_the_duckdb_query_gives_the_ceiling(service: RunningService, folder: Path, offline: bytes) -> None:
    assert service.stop(15) == 0  # publishes what is open
    rows = duckdb.execute(block("duckdb").replace("litehit-data", str(folder / "litehit-data"))).fetchall()
    ((instance, requests, ceiling),) = rows
    assert (instance, requests) == ("my-model", REQUESTS)
    assert ceiling == pytest.approx(summaries(offline)[""]["hit_rates"][-1], rel=1e-12)


def test_a_gateway_is_connected(tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text(block("registry"), encoding="utf-8")
    with serving("--embedded", "--registry", "registry.yaml", cwd=tmp_path) as service:
        address = json.loads((tmp_path / "litehit-data" / "embedded-broker.json").read_text(encoding="utf-8"))
        changed = block("gateway").replace("localhost:9092", address["bootstrap"])
        assert changed.count(address["bootstrap"]) == 1
        names: dict[str, Any] = {}
        exec(changed, names)
        names["on_request"](range(1100), 1_750_000_000_000_000_000, "r1")
        names["on_request"](range(1600), 1_750_000_001_000_000_000, "r2")
        names["tap"].close()
        total = service.query_when(2, [-1])["total"]
    assert total["total_input_tokens"] == 2700
    assert total["total_hit_blocks"] == [2]


def test_variants_are_listed_beside_the_total(folder: Path) -> None:
    (folder / "variants.yaml").write_text(block("variants registry"), encoding="utf-8")
    for line in block("variants").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "litehit"
        output = litehit(*arguments, cwd=folder).stdout
    *instances, total = map(json.loads, output.splitlines())
    assert {one["instance_id"]: one.get("variant_of") for one in instances} == {
        "my-model": None,
        **dict.fromkeys(("my-model@b2048", "my-model@fp8", "my-model@ttl-5m"), "my-model"),
    }
    assert [one["requests"] for one in (*instances, total)] == [REQUESTS] * 5
    assert total["total_hit_tokens"] == instances[0]["total_hit_tokens"]
