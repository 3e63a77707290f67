"""What a shell sees of `litehit`: exit codes, one line for a failure, files that are whole or absent."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli_harness import SECONDS, environment, litehit, summaries

REGISTRY = """
groups: [{name: all}]
instances:
  - {instance_id: one, group: all, block_size_tokens: 4, block_bytes: 1024}
"""
# The worked example: A B C, A B D, A B C, A E, A E.
TRACE = "".join(
    json.dumps(
        {"type": "request", "trace_id": str(n), "timestamp_ns": n, "block_keys": keys, "input_token_len": length}
    )
    + "\n"
    for n, (keys, length) in enumerate([([1, 2, 3], 13), ([1, 2, 4], 12), ([1, 2, 3], 13), ([1, 5], 8), ([1, 5], 8)])
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    (tmp_path / "trace.jsonl").write_text(TRACE, encoding="utf-8")
    return tmp_path


def failure(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    """The one line that says why."""
    assert done.returncode == code, done.stderr.decode()
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("error: ")
    return line


def test_version() -> None:
    assert litehit("--version").stdout.decode() == f"litehit {version('litehit')}\n"


def test_help_lists_the_commands_without_loading_what_they_need() -> None:
    code = (
        "import sys; sys.argv = ['litehit', '--help']\n"
        "from service.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'numba', 'numpy', 'pyarrow', 'confluent_kafka', 'pydantic', 'fastapi'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), check=True, timeout=60)
    for command in ("serve", "publish", "replay", "query", "generate", "schema", "registry"):
        assert f" {command} ".encode() in done.stdout


def test_replay_and_query_the_worked_example(folder: Path) -> None:
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder)
    assert b"wrote 5 facts of 5 requests" in litehit("replay", folder / "trace.jsonl", *where).stdout
    gigabytes = [repr(size / 2**30) for size in (2048, 3072)]
    lines = litehit("query", folder / "litehit_facts.csv", "--capacity-gb", *gigabytes, "-1").stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row["hit_blocks"] for row in rows[:5]] == [[0, 0, 0], [2, 2, 2], [2, 2, 3], [1, 1, 1], [2, 2, 2]]
    assert summaries(lines)[""]["total_hit_tokens"] == [28, 28, 32]
    assert summaries(lines)[""]["total_input_tokens"] == 54


def test_a_limited_replay_is_that_of_the_first_lines(folder: Path, tmp_path: Path) -> None:
    litehit("generate", "--requests", "50", "--instance", "one", "--out", tmp_path / "trace.jsonl")
    first = b"".join((tmp_path / "trace.jsonl").read_bytes().splitlines(keepends=True)[:20])
    (tmp_path / "registry.yaml").write_text(
        "groups: [{name: g}]\ninstances: [{instance_id: one, group: g, block_size_tokens: 64, block_bytes: 1}]\n"
    )
    place = ("--format", "native", "--registry", tmp_path / "registry.yaml", "--out")
    litehit("replay", "-", *place, tmp_path / "first", stdin=first)
    done = litehit("replay", tmp_path / "trace.jsonl", *place, tmp_path / "limited", "--limit", "20")
    assert done.stdout.startswith(b"wrote 20 facts of 20 requests")
    facts = [(tmp_path / name / "litehit_facts.csv").read_bytes() for name in ("first", "limited")]
    assert facts[0] == facts[1]


def test_replay_tells_what_it_ignored(folder: Path) -> None:
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder)
    trace = (TRACE.splitlines()[0] + '\n{"type": "write"}\n').encode()
    told = litehit("replay", "-", *where, stdin=trace).stdout
    assert told.startswith(b"wrote 1 fact of 1 request to ")
    assert told.endswith(b"; 1 ignored (write events or repeats)\n")


def test_query_writes_a_file_or_standard_output_alike(folder: Path) -> None:
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder)
    litehit("replay", "-", *where, stdin=TRACE.encode())
    facts, answers = folder / "litehit_facts.csv", folder / "answers.jsonl"
    litehit("query", facts, "--capacity-gb", "-1", "--out", answers)
    assert answers.read_bytes() == litehit("query", facts, "--capacity-gb", "-1").stdout


@pytest.mark.parametrize("capacity", ["nan", "inf", "-inf"])
def test_a_capacity_that_is_no_number_is_wrong_usage(folder: Path, capacity: str) -> None:
    facts = folder / "facts.csv"
    facts.write_text("trace_id,instance_id,timestamp_ns,input_token_len,block_size_tokens,block_bytes,hit_curve\n")
    assert capacity in failure(litehit("query", facts, "--capacity-gb", capacity, check=False), 2)


def test_a_failed_query_leaves_no_file(folder: Path) -> None:
    facts = folder / "facts.csv"
    facts.write_text("no,facts\n", encoding="utf-8")
    done = litehit("query", facts, "--capacity-gb", "1", "--out", folder / "answers.jsonl", check=False)
    assert "row 1" in failure(done, 1)
    assert not (folder / "answers.jsonl").exists()


def test_a_store_without_facts_is_told(folder: Path) -> None:
    assert "no facts" in failure(litehit("query", folder, "--capacity-gb", "1", check=False), 1)


def test_a_failed_replay_names_the_line_and_leaves_no_file(folder: Path) -> None:
    broken = TRACE.splitlines(keepends=True)
    broken[3] = broken[3].replace('"input_token_len": 8', '"input_token_len": 9999')
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder / "out")
    line = failure(litehit("replay", "-", *where, stdin="".join(broken).encode(), check=False), 1)
    assert "line 4" in line
    assert "9999" in line
    assert not (folder / "out" / "litehit_facts.csv").exists()


def test_an_error_ends_a_replay_whose_input_says_no_more(folder: Path) -> None:
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder / "out")
    command = [sys.executable, "-m", "service.cli", "replay", "-", *map(str, where)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdin is not None
        process.stdin.write(b"no record\n")
        process.stdin.flush()
        assert process.wait(SECONDS) == 1
        assert process.stderr is not None
        assert b"line 1" in process.stderr.read()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--workers", "0"], "workers 0"),
        (["--workers", "1000000000"], "workers 1000000000"),
    ],
)
def test_options_that_are_wrong_usage(folder: Path, options: list[str], named: str) -> None:
    where = ("--format", "native", "--registry", folder / "registry.yaml", "--out", folder / "out")
    assert named in failure(litehit("replay", folder / "trace.jsonl", *where, *options, check=False), 2)


@pytest.mark.parametrize("command", [["replay", "x", "--out", "y"], ["serve"]])
def test_fanout_and_override_exclude_each_other(command: list[str]) -> None:
    done = litehit(*command, "--fanout-all-instances", "--override-instance-id", "one", check=False)
    assert done.returncode == 2
    assert b"fanout_all_instances and override_instance_id 'one' exclude" in done.stderr


def test_an_unknown_format_is_wrong_usage(folder: Path) -> None:
    where = ("--format", "nothing", "--registry", folder / "registry.yaml", "--out", folder / "out")
    assert "'nothing'" in failure(litehit("replay", folder / "trace.jsonl", *where, check=False), 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "trace.jsonl", "--format", "native", "--out", "out"],
        ["replay", "absent", "--no-such-option"],
        ["query", "facts.csv"],
        ["publish", "trace.jsonl", "--format", "native"],
        ["serve", "--embedded", "--roles", "lanes,nothing", "--registry", "registry.yaml"],
        ["serve", "--registry", "registry.yaml"],
        ["serve", "--embedded", "--bootstrap", "127.0.0.1:1"],
        ["serve", "--embedded"],
        ["nothing"],
    ],
)
def test_wrong_usage(folder: Path, arguments: list[str]) -> None:
    done = litehit(*arguments, cwd=folder, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert not (folder / "litehit-data").exists()


def test_a_registry_is_asked_for_with_an_example_that_loads(folder: Path) -> None:
    line = failure(litehit("serve", "--embedded", cwd=folder, check=False), 2)
    example = line[line.index("{") : line.rindex("}") + 1]
    (folder / "example.yaml").write_text(example, encoding="utf-8")
    where = ("--format", "native", "--registry", folder / "example.yaml", "--instance", "any", "--out", folder)
    trace = b'{"type":"request","timestamp_ns":1,"block_keys":[1],"input_token_len":600}'
    assert b"wrote 1 fact of" in litehit("replay", "-", *where, stdin=trace).stdout


@pytest.mark.parametrize("option", [["--registry", "absent.yaml"], []])
def test_a_file_that_is_absent_is_named(folder: Path, option: list[str]) -> None:
    trace = "trace.jsonl" if option else "absent.jsonl"
    where = option or ["--registry", "registry.yaml"]
    done = litehit("replay", trace, "--format", "native", *where, "--out", "out", cwd=folder, check=False)
    assert "absent" in failure(done, 1)


def test_publish_without_a_broker_says_how_to_start_one(folder: Path) -> None:
    done = litehit("publish", "trace.jsonl", "--format", "native", "--embedded", cwd=folder, check=False)
    assert "litehit serve --embedded" in failure(done, 1)


def test_a_setting_of_the_environment_is_an_option(folder: Path) -> None:
    where = ("--format", "native", "--out", folder)
    registry = str(folder / "registry.yaml")
    assert (
        b"wrote 5" in litehit("replay", folder / "trace.jsonl", *where, settings={"LITEHIT_REGISTRY": registry}).stdout
    )
    done = litehit("replay", folder / "trace.jsonl", *where, settings={"LITEHIT_PORT": "x"}, check=False)
    assert done.returncode == 2
    assert b"LITEHIT_PORT" in done.stderr


def test_generate_is_the_same_for_the_same_seed(folder: Path) -> None:
    arguments = ("generate", "--requests", "50", "--seed", "7", "--instance", "a", "--instance", "b")
    first = litehit(*arguments).stdout
    litehit(*arguments, "--out", folder / "again.jsonl")
    assert (folder / "again.jsonl").read_bytes() == first
    events = [json.loads(line) for line in first.splitlines()]
    assert len(events) == 50
    assert {event["instance_id"] for event in events} == {"a", "b"}
    assert litehit(*arguments[:4], "8").stdout != first
    assert "requests 0" in failure(litehit("generate", "--requests", "0", check=False), 2)


def test_schema_writes_every_document(folder: Path) -> None:
    written = (
        litehit("schema", folder / "schemas", settings={"LITEHIT_FACTS_TOPIC": "mine.facts"}).stdout.decode().split()
    )
    assert sorted(map(str, (folder / "schemas").iterdir())) == sorted(written)
    documents = {Path(path).name: json.loads(Path(path).read_text(encoding="utf-8")) for path in written}
    assert documents["asyncapi.json"]["channels"]["facts"]["address"] == "mine.facts"
    assert documents["fact.schema.json"]["title"] == "RequestFact"
