"""`litehit curve`: table, CSV, JSON and picture of the same exact points."""

from __future__ import annotations

import csv
import io
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from litehit.facts import FactBatch
from litehit.facts_csv import HEADER, write_header, write_rows
from litehit.projector import HitCurveProjector
from tests.archive_facts import made_facts
from tests.cli_harness import environment, litehit


@pytest.fixture(scope="module")
def facts() -> FactBatch:
    return made_facts(300).facts


@pytest.fixture(scope="module")
def file(facts: FactBatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("curve") / "facts.csv"
    with path.open("wb") as sink:
        write_header(sink)
        write_rows(sink, facts)
    return path


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode())))


def failure(*arguments: str | Path, code: int = 1) -> str:
    done = litehit("curve", *arguments, check=False)
    assert done.returncode == code
    return done.stderr.decode()


def test_every_breakpoint_is_the_projectors(facts: FactBatch, file: Path) -> None:
    rows = rows_of(litehit("curve", file, "--csv", "-").stdout)
    assert {row["instance_id"] for row in rows} == {"model-0", "model-1", "model-2", ""}
    listed = list(facts)
    for row in [*rows[:40:7], *rows[-40::7]]:
        chosen = [one for one in listed if row["instance_id"] in {"", one.instance_id}]
        capacity = HitCurveProjector.capacity_bytes(float(row["capacity_gb"]))
        assert capacity == int(row["capacity_bytes"])
        hits = sum(HitCurveProjector.project_bytes(one.hit_curve, capacity, one.block_bytes) for one in chosen)
        assert int(row["hit_blocks"]) == hits
        assert int(row["hit_tokens"]) == 512 * hits
        assert float(row["hit_rate"]) == 512 * hits / sum(one.input_token_len for one in chosen)
    assert all(rows[at]["of_ceiling"] == "1.0" for at in (-1,))


def test_the_table_has_a_readable_number_of_points(file: Path) -> None:
    lines = litehit("curve", file, "--instance", "model-1").stdout.decode().splitlines()
    assert lines[0].startswith("model-1: 100 requests, ceiling ")
    points = [line for line in lines if line.count("%") == 2]
    assert 10 <= len(points) <= 20
    assert "100.00%" in points[-1]
    assert len([line for line in litehit("curve", file).stdout.decode().splitlines() if "requests" in line]) == 4


def test_json_is_what_the_call_answers(file: Path) -> None:
    answer = json.loads(litehit("curve", file, "--json", "--points", "50").stdout)
    assert answer["total"]["requests"] == 300
    assert [one["instance_id"] for one in answer["instances"]] == ["model-0", "model-1", "model-2"]
    assert len(answer["total"]["capacity_gb"]) <= 50
    rows = rows_of(litehit("curve", file, "--csv", "-", "--points", "50").stdout)
    total = [row for row in rows if row["instance_id"] == ""]
    assert [float(row["hit_rate"]) for row in total] == answer["total"]["hit_rates"]


def test_what_if_blocks_took_half(file: Path) -> None:
    def ceiling_at(*options: str) -> Any:
        return json.loads(litehit("curve", file, "--json", "--points", "2", *options).stdout)["total"]["capacity_bytes"]

    recorded, half = ceiling_at(), ceiling_at("--block-bytes", str(1 << 19))
    assert half == [one // 2 for one in recorded]


def test_a_picture_is_whole(file: Path, tmp_path: Path) -> None:
    litehit("curve", file, "--png", tmp_path / "curve.png")
    data = (tmp_path / "curve.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1500, 900)
    assert [one.name for one in tmp_path.iterdir()] == ["curve.png"]


def test_a_picture_without_matplotlib_says_what_to_install(file: Path, tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'matplotlib' else find(name, *rest)\n"
        f"sys.argv = ['litehit', 'curve', {str(file)!r}, '--png', {str(tmp_path / 'curve.png')!r}]\n"
        "from service.cli import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment(), check=False, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "error: --png needs matplotlib, which is not installed; run: pip install 'litehit[png]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_there_is_no_curve_of(file: Path, tmp_path: Path) -> None:
    assert "no fact has instance_id 'model-9'" in failure(file, "--instance", "model-9")
    empty = tmp_path / "empty.csv"
    empty.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    assert "there are no facts in it" in failure(empty)
    assert "--points" in failure(file, "--points", "1", code=2)


def test_facts_without_a_hit_have_no_curve(tmp_path: Path) -> None:
    row = 'a,one,1,64,64,1048576,"[]"'
    (tmp_path / "facts.csv").write_text(f"{HEADER}\n{row}\n", encoding="utf-8")
    lines = litehit("curve", tmp_path / "facts.csv").stdout.decode().splitlines()
    assert lines == ["one: 1 request, ceiling 0.00%", "no block is hit at any capacity"]
    done = litehit("curve", tmp_path / "facts.csv", "--png", tmp_path / "curve.png", check=False)
    assert done.returncode == 1
    assert done.stderr.decode().endswith("no block is hit at any capacity, so there is no curve to draw\n")
    assert not (tmp_path / "curve.png").exists()
