"""The README's command that builds instance ids runs as written, and makes the ids that it names."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli.app import app
from tests.readme import block

REGISTRY = """
groups: [{name: any}]
instances:
  - {instance_id: "meta%2Fllama/*", group: any, block_size_tokens: 16, block_bytes: 1024}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tenants.yaml").write_text(REGISTRY, encoding="utf-8")
    return tmp_path


def line(tenant: str | None, trace_id: str) -> str:
    fields = {"type": "request", "trace_id": trace_id, "timestamp_ns": 5, "block_keys": [1], "input_token_len": 16}
    return json.dumps(fields | {"model": "meta/llama", "metadata": {"tenant": tenant}})


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def ids(folder: Path) -> list[str]:
    rows = (folder / "out" / "litehit_facts.csv").read_text(encoding="utf-8").splitlines()[1:]
    return [row.split(",")[1] for row in rows]


def test_the_command_builds_the_ids(folder: Path) -> None:
    program, *command = shlex.split(block("template"))
    assert program == "litehit"
    lines = [line("acme", "a"), line(None, "a"), line("acme", "a"), line("acme", "b")]
    (folder / "requests.jsonl").write_text("\n".join(lines), encoding="utf-8")
    code, printed = run(*command)
    assert code == 0, printed
    assert ids(folder) == ["meta%2Fllama/acme", "meta%2Fllama/none", "meta%2Fllama/acme", "meta%2Fllama/acme"]
    code, printed = run(*command, "--repeats-window", "9")
    assert code == 0, printed
    assert ids(folder) == ["meta%2Fllama/acme", "meta%2Fllama/none", "meta%2Fllama/acme"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--instance-template", "{model}{tenant}"], "needs a text between {model} and {tenant}"),
        (["--instance-template", "{model}", "--instance", "x"], "exclude each other"),
        (["--repeats-window", "-1"], "greater than or equal to 0"),
    ],
)
def test_wrong_usage_is_told(folder: Path, options: list[str], words: str) -> None:
    (folder / "requests.jsonl").write_text(line("acme", "a"), encoding="utf-8")
    code, printed = run("replay", "requests.jsonl", "--registry", "tenants.yaml", "--out", "out", *options)
    assert code == 2
    assert words in re.sub(r"[\s│]+", " ", printed)


def test_records_out_of_order_are_told(folder: Path) -> None:
    lines = [line("acme", "a"), line("acme", "b").replace('_ns": 5', '_ns": 4'), line("acme", "c")]
    (folder / "requests.jsonl").write_text("\n".join(lines), encoding="utf-8")
    template = ["--instance-template", "{model}/{metadata.tenant}"]
    code, printed = run(
        "replay", "requests.jsonl", "--registry", "tenants.yaml", "--out", "out", *template, "--reorder", "1"
    )
    assert code == 0, printed
    assert "; 1 stood after a record of a later time and were put in order" in printed.replace("\n", " ")
