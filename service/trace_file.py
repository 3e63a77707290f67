"""Reading a trace line by line from a file, a compressed file or standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

import pyarrow as pa

STANDARD_INPUT = "-"
_BUFFER_BYTES = 2**20  # a line is often longer than Python's usual buffer
_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}


class TraceFile:
    """The lines of a trace, without their line ends; a context manager that closes what it opened.

    Args:
        name: path of the file, read through gzip or zstd where it ends in .gz or .zst; `-` is standard input.

    Attributes:
        size: bytes of the file as it lies on the disk; None for standard input.
    """

    def __init__(self, name: str) -> None:
        self._opened = ExitStack()
        if name == STANDARD_INPUT:
            self.size = None
            self._raw: BinaryIO = sys.stdin.buffer
            self._lines: Iterator[bytes] = iter(self._raw)
            return
        path = Path(name)
        self.size = path.stat().st_size
        self._raw = self._opened.enter_context(path.open("rb", _BUFFER_BYTES))
        self._lines = iter(self._raw)
        if compression := _COMPRESSION.get(path.suffix):
            stream = self._opened.enter_context(pa.CompressedInputStream(self._raw, compression))
            self._lines = iter(io.BufferedReader(cast("io.RawIOBase", stream), _BUFFER_BYTES))

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def __iter__(self) -> Iterator[bytes]:
        return (line.rstrip(b"\r\n") for line in self._lines)

    def peek(self, count: int) -> list[bytes]:
        """The next lines, at most so many; they are still to be iterated."""
        lines = list(islice(self._lines, count))
        self._lines = chain(lines, self._lines)
        return [line.rstrip(b"\r\n") for line in lines]

    def position(self) -> int:
        """Bytes of the file read so far, as they lie on the disk; 0 for standard input."""
        return 0 if self.size is None else self._raw.tell()
