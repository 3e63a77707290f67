"""`litehit export`: the store's facts as a facts CSV."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from litehit.facts_csv import HEADER, read_facts
from schemas.fact import RequestFact
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, describe
from service.archive.segment_writer import encode
from tests.archive_facts import made_fact, made_facts
from tests.chains import put
from tests.cli_harness import environment, litehit


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A store of 30 facts in three segments."""
    folder = tmp_path / "store"
    store = open_store(str(folder))
    for base in (0, 10, 20):
        table = made_facts(10, base).table
        info = describe(ChainKey("litehit.facts", "g", 0), base, base + 10, table)
        store.create(info.path, encode(info, table))
    return folder


def facts_of(content: bytes) -> list[RequestFact]:
    assert content.startswith(f"{HEADER}\n".encode())
    return [fact for batch in read_facts(io.BytesIO(content), "out") for fact in batch]


def test_everything_and_a_part(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "facts.csv"
    done = litehit("export", "--format", "csv", "--out", out, "--store", archive)
    assert (done.stdout, done.stderr) == (b"", f"wrote 30 facts to {out}\n".encode())
    assert facts_of(out.read_bytes()) == [made_fact(offset) for offset in range(30)]
    begin, end = made_fact(5).timestamp_ns, "2023-11-14T22:13:45Z"
    part = litehit(
        "export", "--out", "-", "--store", archive, "--from", str(begin), "--to", end, "--instance", "model-1"
    )
    wanted = [made_fact(offset) for offset in range(5, 25)]
    assert facts_of(part.stdout) == [fact for fact in wanted if fact.instance_id == "model-1"]
    # The command that reads facts takes it.
    query = ("--capacity-gb", "1", "--summary")
    assert litehit("query", out, *query).stdout == litehit("query", archive, *query).stdout


def test_query_and_curve_of_a_part_are_those_of_its_facts(archive: Path, tmp_path: Path) -> None:
    """The same, whether the facts come from a store, a segment or a CSV."""
    part = ("--from", str(made_fact(12).timestamp_ns), "--to", str(made_fact(18).timestamp_ns), "--instance", "model-1")
    everything, some = tmp_path / "everything.csv", tmp_path / "some.csv"
    litehit("export", "--out", everything, "--store", archive)
    litehit("export", "--out", some, "--store", archive, *part)
    assert 0 < len(facts_of(some.read_bytes())) < 6
    segment = sorted(archive.rglob("*.parquet"))[1]
    packed = [tmp_path / f"facts.csv{suffix}" for suffix in (".gz", ".zst")]
    for path, codec in zip(packed, ("gzip", "zstd"), strict=True):
        path.write_bytes(pa.compress(everything.read_bytes(), codec=codec, asbytes=True))
    for command in (("query", "--capacity-gb", "1", "-1"), ("curve", "--csv", "-")):
        name, *options = command
        wanted = litehit(name, some, *options).stdout
        for facts in (archive, segment, everything, *packed):
            assert litehit(name, facts, *options, *part).stdout == wanted
        assert litehit(name, "-", *options, *part, stdin=everything.read_bytes()).stdout == wanted


@pytest.mark.parametrize(
    ("content", "why"), [(pa.compress(b"a" * 9999, "gzip", True)[:-5], "Truncated"), (b"a,b", "header")]
)
def test_a_torn_csv_is_told_with_its_name(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "facts.csv.gz").write_bytes(content)
    done = litehit("query", tmp_path / "facts.csv.gz", "--capacity-gb", "1", check=False)
    assert done.returncode == 1
    assert f"error: {tmp_path}/facts.csv.gz: cannot be read beyond row 0 (" in done.stderr.decode()
    assert why in done.stderr.decode()


def test_a_bound_in_seconds_is_told_also_where_facts_are_as_early(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text(f'{HEADER}\na,one,1,64,64,1048576,"[]"\n', encoding="utf-8")
    now = int(time.time())
    done = litehit("query", tmp_path / "facts.csv", "--capacity-gb", "1", "--to", str(now))
    assert done.stderr.decode() == (
        f"warning: --to {now} looks like seconds since 1970, but is taken as nanoseconds; where seconds are meant, "
        f"send {now * 10**9}\n"
    )


def test_a_part_without_facts_is_told(archive: Path) -> None:
    late = ("--from", "2030-01-01T00:00:00Z")
    done = litehit("query", archive, "--capacity-gb", "1", *late)
    assert json.loads(done.stdout)["requests"] == 0
    assert done.stderr == b"warning: no fact was found in that window\n"
    done = litehit("curve", archive, *late, check=False)
    assert (done.returncode, done.stderr.decode()) == (
        1,
        f"error: {archive}: there are no facts in it, in that window\n",
    )
    assert litehit("export", "--out", "-", "--store", archive, *late).stderr.splitlines() == [
        b"warning: no fact was found in that window",
        b"wrote 0 facts to standard output",
    ]
    done = litehit("query", archive, "--capacity-gb", "1", "--from", "soon", check=False)
    assert (done.returncode, b"--from" in done.stderr) == (2, True)


def test_every_command_takes_times_and_instances_alike(archive: Path, tmp_path: Path) -> None:
    csv = tmp_path / "facts.csv"
    litehit("export", "--out", csv, "--store", archive)
    segment = min(archive.rglob("*.parquet"))
    for facts in (archive, csv, segment):
        for command in (("query", "--capacity-gb", "1"), ("curve",)):
            done = litehit(command[0], facts, *command[1:], "--from", "1700000000", check=False)
            assert done.returncode == 2
            assert "looks like seconds" in " ".join(done.stderr.decode().split())
        done = litehit("query", facts, "--capacity-gb", "1", "--instance", "model-1", "--instance", "typo")
        assert done.stderr.decode() == "warning: no fact of instance 'typo' was found\n"
    late = (
        "--from",
        str(made_fact(29).timestamp_ns),
        "--instance",
        "model-0",
        "--instance",
        "model-1",
        "--instance",
        "model-2",
    )
    done = litehit("curve", csv, *late, check=False)
    assert "no fact in that window has instance_id" in done.stderr.decode()


def test_what_is_wrong_is_named_and_nothing_is_left_behind(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "facts.csv"
    for arguments, says in [
        (("--from", "1700000000"), "looks like seconds"),
        (("--from", "5", "--to", "5"), "is not before --to"),
        (("--format", "xlsx"), "give csv"),
    ]:
        done = litehit("export", "--out", out, "--store", archive, *arguments, check=False)
        assert done.returncode == 2
        assert says in " ".join(done.stderr.decode().split())
    done = litehit("export", "--out", out, "--store", tmp_path, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert b"holds no facts" in done.stderr
    segment = sorted(archive.rglob("*.parquet"))[1]
    segment.write_bytes(segment.read_bytes()[:-100])
    done = litehit("export", "--out", out, "--store", archive, check=False)
    assert done.returncode == 1
    assert [line.split(":")[0] for line in done.stderr.decode().splitlines()] == ["warning", "warning", "error"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["store"]


def test_what_is_not_there_is_told_as_query_tells_it(archive: Path) -> None:
    segments = sorted(archive.rglob("*.parquet"))
    segments[1].unlink()
    put(open_store(str(archive)), 30, 40, gap_end=33, chain=ChainKey("litehit.facts", "g", 0))
    asked = ("--from", made_fact(20).timestamp_ns, "--instance", "model-1", "--instance", "typo")
    done = litehit("export", "--out", "-", "--store", archive, *map(str, asked))
    said = done.stderr.decode().splitlines()
    assert said == [
        "note: litehit.facts/g/0 lacks offsets 30 to 33: they expired before they were archived",
        "warning: litehit.facts/g/0: no segment covers offsets 10 to 20",
        "warning: no fact of instance 'typo' was found in that window",
        f"wrote {len(facts_of(done.stdout))} facts to standard output",
    ]
    assert {fact.instance_id for fact in facts_of(done.stdout)} == {"model-1"}
    asked_too = litehit("query", archive, "--capacity-gb", "1", "--summary")
    assert asked_too.stderr.decode().splitlines() == said[:2]


def test_a_reader_that_goes_away_is_told_in_one_line(archive: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "service.cli", "export", "--out", "-", "--store", str(archive)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert said == "error: standard output: its reader went away before the end\n"
