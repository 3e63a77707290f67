"""A trace reads the same from a plain file, from gzip, from zstd and from standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from service.trace_file import TraceFile

LINES = [b'{"a": 1}', b"", b"second " + b"x" * 100_000, b"no end of line"]
CONTENT = b"\n".join(LINES)


@pytest.mark.parametrize(("suffix", "compression"), [("", None), (".gz", "gzip"), (".zst", "zstd")])
def test_lines_do_not_depend_on_the_compression(tmp_path: Path, suffix: str, compression: str | None) -> None:
    path = tmp_path / f"trace.jsonl{suffix}"
    path.write_bytes(CONTENT if compression is None else pa.compress(CONTENT, codec=compression, asbytes=True))
    if compression == "gzip":
        assert path.read_bytes()[:2] == b"\x1f\x8b"
    with TraceFile(str(path)) as trace:
        assert list(trace) == LINES
        assert trace.position() == trace.size == path.stat().st_size


def test_windows_line_ends_are_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"one\r\ntwo\r\n")
    with TraceFile(str(path)) as trace:
        assert list(trace) == [b"one", b"two"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(CONTENT)))
    with TraceFile("-") as trace:
        assert list(trace) == LINES
        assert trace.size is None


def test_an_absent_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl"):
        TraceFile("nowhere.jsonl")


def test_a_torn_gzip_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(pa.compress(CONTENT, codec="gzip", asbytes=True)[:50])
    with TraceFile(str(path)) as trace, pytest.raises(OSError, match="Truncated"):
        list(trace)
