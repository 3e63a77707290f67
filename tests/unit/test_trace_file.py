"""A trace reads the same from a plain file, from gzip, from zstd and from standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from litehit.errors import TraceError
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


@pytest.mark.parametrize(("lines", "told"), [(0, ""), (300_000, " beyond line 299593")])
def test_a_torn_gzip_file_is_an_error_with_its_name_and_last_line(tmp_path: Path, lines: int, told: str) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(pa.compress(b"a line\n" * lines + CONTENT, codec="gzip", asbytes=True)[:-9])
    words = rf"trace\.jsonl\.gz: cannot be read{told} \(.*Truncated.*\); see that the file is whole"
    with TraceFile(str(path)) as trace, pytest.raises(TraceError, match=words):
        list(trace)


@pytest.mark.parametrize(("suffix", "compression"), [(".gz", "gzip"), (".zst", "zstd")])
def test_a_compressed_file_that_is_not_named_so_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, compression: str
) -> None:
    content = pa.compress(CONTENT, codec=compression, asbytes=True)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(content)
    words = rf"trace\.jsonl: is compressed with {compression}; name it so that it ends in \{suffix}, or decompress it"
    with TraceFile(str(path)) as trace, pytest.raises(TraceError, match=words):
        trace.peek(8)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with TraceFile("-") as trace, pytest.raises(TraceError, match=rf"decompress it first \({compression} -dc\)"):
        list(trace)
