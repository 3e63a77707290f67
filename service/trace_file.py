"""Reading a trace's lines, in windows, from a file, a compressed file or standard input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

import pyarrow as pa

from litehit.errors import TraceError
from litehit.window import WINDOW_BYTES, Window, records_in
from service.standard_input import StandardInput

STANDARD_INPUT = "-"
_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}


def unpacked(raw: BinaryIO, path: Path, opened: ExitStack) -> BinaryIO:
    """What is in a file that is open, through gzip or zstd where its name ends so; closed with `opened`."""
    compression = _COMPRESSION.get(path.suffix)
    if compression is None:
        return raw
    return cast("BinaryIO", opened.enter_context(pa.CompressedInputStream(raw, compression)))


class TraceFile:
    """The lines of a trace, without their line ends; a context manager that closes what it opened.

    Args:
        name: path of the file, read through gzip or zstd where it ends in .gz or .zst; `-` is standard input.

    Attributes:
        size: bytes of the file as it lies on the disk; None for standard input.
        stop: ends the waiting for standard input, also in another thread; a file is not waited for.
    """

    def __init__(self, name: str) -> None:
        self._opened = ExitStack()
        self.stop: Callable[[], None] = lambda: None
        if name == STANDARD_INPUT:
            self.size = None
            self._raw: BinaryIO | None = None
            standard_input = self._opened.enter_context(closing(StandardInput()))
            self.stop = standard_input.stop
            self._windows = _windows(name, standard_input.read)
            return
        path = Path(name)
        self.size = path.stat().st_size
        self._raw = raw = self._opened.enter_context(path.open("rb", buffering=0))
        self._windows = _windows(name, unpacked(raw, path, self._opened).read)

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def __iter__(self) -> Iterator[bytes]:
        return (line for window in self.windows() for _, line in window.records())

    def windows(self) -> Iterator[Window]:
        """The lines in windows, numbered from 1. Memory: a window.

        Raises:
            TraceError: while they are iterated: the file can't be read on, or is compressed and is not named so.
        """
        return self._windows

    def peek(self, count: int) -> list[bytes]:
        """The next lines, at most so many; they are still to be iterated. Errors are those of `windows`."""
        read: list[Window] = []
        lines: list[bytes] = []
        while len(lines) < count and (window := next(self._windows, None)) is not None:
            read.append(window)
            lines.extend(line for _, line in window.records())
        self._windows = chain(read, self._windows)
        return lines[:count]

    def position(self) -> int:
        """Bytes of the file read so far, as they lie on the disk; 0 for standard input."""
        return 0 if self._raw is None else self._raw.tell()


def _windows(name: str, read: Callable[[int], bytes]) -> Iterator[Window]:
    first = 1
    begun: list[bytes | memoryview] = []  # of a line
    while True:
        try:
            data = read(WINDOW_BYTES)
        except OSError as error:
            how_far = f" beyond line {first - 1}" if first > 1 else ""
            raise TraceError(
                name, None, f"cannot be read{how_far} ({error}); see that the file is whole, and what its name says"
            ) from None
        if not data:
            break
        if first == 1 and not begun:
            _refuse_compressed(name, data)
        end = data.rfind(b"\n") + 1
        if not end:
            begun.append(data)
            continue
        text = b"".join((*begun, memoryview(data)[:end]))
        begun = [data[end:]]
        lines = records_in(text)
        yield Window(text, range(first, first + lines))
        first += lines
    if rest := b"".join(begun):
        yield Window(rest + b"\n", range(first, first + 1))


def _refuse_compressed(name: str, data: bytes) -> None:
    for suffix, magic in _MAGIC.items():
        if data.startswith(magic):
            compression = _COMPRESSION[suffix]
            remedy = (
                f"decompress it first ({compression} -dc)"
                if name == STANDARD_INPUT
                else f"name it so that it ends in {suffix}, or decompress it"
            )
            raise TraceError(name, None, f"is compressed with {compression}; {remedy}")
