"""A trace of any format, opened: its records, numbered, in the order in which they are to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from litehit.errors import OptionError
from litehit.request import Request
from litehit.time_units import NS_PER_S
from litehit.window import Window, windows_of
from service import formats
from service.format_names import AUTO, LINE_FORMATS, FormatName
from service.formats.base import FormatError, RecordContext
from service.formats.naming import naming_by
from service.formats.recognise import FIRST_LINES, looks_rather_like, recognise
from service.formats.trace_format import TraceFormat
from service.reorder import TimeOrder
from service.trace_file import TraceFile
from service.trace_sessions import SessionTrace, session_files

_ANY = RecordContext("", 0, 0)


class Trace(Protocol):
    """Records with their numbers, and how far they are read."""

    @property
    def trace_format(self) -> TraceFormat:
        """How a record is read."""
        ...

    @property
    def size(self) -> int | None:
        """Bytes there are; None where that is not known."""
        ...

    @property
    def late(self) -> int:
        """Records that stand after one of a later time, where they are put in order."""
        ...

    def position(self) -> int:
        """Bytes read so far."""
        ...

    def windows(self) -> Iterator[Window]:
        """The records with their numbers: that of its line, or of its place where records do not lie in lines."""
        ...

    def stop(self) -> None:
        """End the waiting for records, also in another thread: no more are wanted."""
        ...


class LineTrace:
    """A trace of one record a line.

    Args:
        lines: the file.
        trace_format: how a record is read.
        reorder_seconds: records are put in order of their times where they stand so far apart.

    Attributes:
        late: see `Trace.late`.
    """

    def __init__(self, lines: TraceFile, trace_format: TraceFormat, reorder_seconds: float) -> None:
        self._lines = lines
        self.trace_format = trace_format
        self._window_ns = round(reorder_seconds * NS_PER_S)
        self.size = lines.size
        self.late = 0
        self._newest_ns: int | None = None

    def position(self) -> int:
        """See `Trace.position`."""
        return self._lines.position()

    def windows(self) -> Iterator[Window]:
        """See `Trace.windows`."""
        if not self._window_ns:
            return self._lines.windows()
        return self._windows_in_order()

    def stop(self) -> None:
        """See `Trace.stop`."""
        self._lines.stop()

    def _windows_in_order(self) -> Iterator[Window]:
        # None is filled from two that are read: a tap may be slow to write more.
        order = TimeOrder(self._time_of, self._window_ns)
        for window in self._lines.windows():
            yield from windows_of(order.add(window.records()))
        yield from windows_of(order.rest())

    def _time_of(self, line: bytes) -> int | None:
        try:
            request = self.trace_format.parse(line, _ANY)
        except FormatError:  # told where it is read
            return None
        if not isinstance(request, Request):
            return None
        time = request.timestamp_ns
        if self._newest_ns is not None and time < self._newest_ns:
            self.late += 1
        else:
            self._newest_ns = time
        return time


@contextmanager
def open_trace(
    name: str,
    format_name: str,
    reorder_seconds: float | None = None,
    template: str | None = None,
    *,
    go_on: bool = False,
    warn: Callable[[str], Any] = lambda _: None,
) -> Iterator[Trace]:
    """Open a trace while the block runs.

    Args:
        name: a file, .gz and .zst too; `-` is standard input; of sessions also a folder.
        format_name: of its records; `auto`: the one that the first lines are of. A folder is one of sessions.
        reorder_seconds: as in `LineTrace`; None: the format's own.
        template: of instance ids; None: records state their instance.
        go_on: as in `SessionTrace`.
        warn: told where the first line looks like one of another format.

    Raises:
        OptionError: `reorder_seconds` is no number of seconds, the format is unknown, or the template none.
        TraceError: the format can't be recognised, or a folder holds no session.
    """
    if reorder_seconds is not None and not 0 <= reorder_seconds < float("inf"):
        raise OptionError(f"reorder {reorder_seconds} is no number of seconds; give 0 or more")
    if format_name == FormatName.NATIVE_PROTOBUF:
        raise OptionError(
            f"format {format_name} is of records on the topic, which no file holds; "
            f"name one of {', '.join(LINE_FORMATS)}"
        )
    naming = naming_by(template)
    if Path(name).is_dir():
        if format_name not in {AUTO, FormatName.WEKA}:
            raise OptionError(f"{name} is a folder, and format {format_name} lies in one file; name that")
        yield SessionTrace(session_files(name), naming=naming, go_on=go_on)
        return
    with TraceFile(name) as lines:
        known = recognise(name, lines.peek(FIRST_LINES)) if format_name == AUTO else format_name
        trace_format = formats.get(known, naming)
        if format_name != AUTO and (other := looks_rather_like(b"".join(lines.peek(1)), known)) is not None:
            warn(
                f"{name}: line 1 looks like {other} rather than {known}, and formats differ in the units of their "
                f"times and in their keys; see that --format is right"
            )
        if trace_format.name == FormatName.WEKA:
            yield SessionTrace([name], lines, naming, go_on=go_on)
        else:
            window = trace_format.reorder_seconds if reorder_seconds is None else reorder_seconds
            yield LineTrace(lines, trace_format, window)
