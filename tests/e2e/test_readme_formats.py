"""Each command of the README's table of producers runs as written on the sample lines."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli.app import app
from service.format_names import LINE_FORMATS
from tests.readme import README, block

ROOT = Path(__file__).parents[2]
COMMANDS = re.findall(r"^\|[^|]+\| `litehit (replay [^`]+)` \|", README, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the samples and the README's registry, where commands run."""
    shutil.copytree(ROOT / "tests" / "samples", tmp_path, dirs_exist_ok=True)
    (tmp_path / "formats.yaml").write_text(block("formats"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def format_of(command: str) -> str:
    found = re.search(r"--format (\S+)", command)
    assert found is not None
    return found[1]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_has_every_format() -> None:
    assert [format_of(command) for command in COMMANDS] == list(LINE_FORMATS)


@pytest.mark.parametrize("command", COMMANDS, ids=format_of)
def test_a_command_of_the_table(command: str, folder: Path) -> None:
    printed = run(*shlex.split(command))
    assert re.fullmatch(
        r"wrote (\d+) facts of \1 requests to out/litehit_facts\.csv"
        r"(; \d+ stood after .* in order)?(; \d+ ignored \(.*\))?\n",
        printed,
    )
    facts = (folder / "out" / "litehit_facts.csv").read_bytes()
    assert facts.count(b"\n") - 1 == 8
    assert b'"[[' in facts
    # The same without naming the format.
    run(*shlex.split(re.sub(r"--format \S+ ", "", command)))
    assert (folder / "out" / "litehit_facts.csv").read_bytes() == facts
