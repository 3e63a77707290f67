"""A file or folder of agent sessions (format `weka`) as one trace, merged by time in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from litehit.errors import TraceError
from litehit.request import Request
from litehit.window import Window, windows_of
from service.formats.base import FormatError, PlacedError, RecordContext
from service.formats.naming import STATED, Naming
from service.formats.trace_format import TraceFormat
from service.formats.weka import SessionOfOne, WekaFormat, read_session
from service.trace_file import STANDARD_INPUT, TraceFile

_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst")


def session_files(folder: str) -> list[str]:
    """The files in a folder that hold sessions, by name.

    Raises:
        TraceError: it has none.
    """
    files = sorted(str(path) for path in Path(folder).rglob("*") if path.name.endswith(_SUFFIXES))
    if not files:
        raise TraceError(folder, None, f"holds no session; put files there that end in {' or '.join(_SUFFIXES[:2])}")
    return files


class SessionTrace:
    """The requests of sessions in order of time, each as a session of one; those of one time as they stand.

    Memory: one file's line, and a few integers a request; the requests lie in a temporary file in between.

    Args:
        files: their names; each holds a session a line, or one session over any number of lines.
        opened: the first of them, where it is open already.
        naming: how the instance of a request is told.
        go_on: a request that can't be read is one of the records, which `trace_format` refuses with its place.

    Attributes:
        size: bytes of all files; None for standard input.
        trace_format: how a request is read.
        late: none; sessions have no order of their own.
    """

    def __init__(
        self,
        files: Sequence[str],
        opened: TraceFile | None = None,
        naming: Naming = STATED,
        *,
        go_on: bool = False,
    ) -> None:
        self._faults: dict[int, FormatError] = {}
        self.trace_format: TraceFormat = _SessionFormat(naming, self._faults)
        self._naming = naming
        self._go_on = go_on
        self._files = files
        self._read = 0
        self.late = 0
        self._current = opened
        self.size = None if files[0] == STANDARD_INPUT else sum(Path(file).stat().st_size for file in files)

    def position(self) -> int:
        """Bytes of the files read so far."""
        return self._read + (0 if self._current is None else self._current.position())

    def windows(self) -> Iterator[Window]:
        """See `Trace.windows`."""
        return windows_of(self._in_time_order())

    def stop(self) -> None:
        """See `Trace.stop`."""
        if (current := self._current) is not None:
            current.stop()

    def _in_time_order(self) -> Iterator[tuple[int, bytes]]:
        with tempfile.TemporaryFile() as kept:
            places: list[tuple[int, int, int]] = []
            faults: dict[int, FormatError] = {}
            end = 0
            for time, record, fault in self._requests():
                kept.write(record)
                places.append((time, end, len(record)))
                if fault is not None:
                    faults[end] = fault
                end += len(record)
            places.sort()
            for number, (_, start, length) in enumerate(places, 1):
                if start in faults:
                    self._faults[number] = faults.pop(start)
                kept.seek(start)
                yield number, kept.read(length)

    def _requests(self) -> Iterator[SessionOfOne]:
        seen: dict[str, tuple[str, int | None]] = {}
        for file in self._files:
            with self._current or TraceFile(file) as lines:
                self._current = lines
                for number, record in _records(lines):
                    try:
                        session = read_session(record, self._naming)
                        if session.local_id is not None:
                            # Its keys are told from other sessions' by its id alone.
                            if (other := seen.get(session.local_id)) is not None:
                                raise TraceError(file, number, _met_again(session.local_id, *other))
                            seen[session.local_id] = file, number
                        for one in session.requests:
                            yield one if one.fault is None else self._faulty(one, one.fault, file, number)
                    except FormatError as error:
                        raise TraceError(file, number, str(error)) from None
                self._read += lines.size or 0
                self._current = None

    def _faulty(self, one: SessionOfOne, fault: FormatError, file: str, number: int | None) -> SessionOfOne:
        if not self._go_on:
            raise fault
        return one._replace(fault=PlacedError(fault.reason, str(TraceError(file, number, str(fault)))))


class _SessionFormat(WekaFormat):
    """Refuses those requests of a trace that can't be read, by their numbers: their sentences name their places."""

    def __init__(self, naming: Naming, faults: Mapping[int, FormatError]) -> None:
        super().__init__(naming)
        self._faults = faults

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        if (fault := self._faults.get(context.position)) is not None:
            raise fault
        return super().parse(record, context)


def _met_again(session_id: str, file: str, number: int | None) -> str:
    line = "" if number is None else f", line {number},"
    return f"session {session_id!r} is in {file}{line} too; keep one of them, or give each an id of its own"


def _records(lines: TraceFile) -> Iterator[tuple[int | None, bytes]]:
    """Sessions, with their lines where a line holds one."""
    if b"".join(lines.peek(1)).strip() == b"{":
        yield None, b"\n".join(lines)
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line
