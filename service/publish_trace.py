"""Sending a trace to the requests topic, in its order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from litehit.counted import counted
from litehit.errors import OptionError, TraceError
from litehit.time_units import NS_PER_S
from litehit.window import Window
from litehit.windows_ahead import read_ahead
from schemas.dead_letter import Reason
from service.errors import PublishError
from service.format_names import FormatName
from service.formats.base import PlacedError
from service.formats.trace_format import TraceFormat
from service.outgoing import OutgoingForm, OutgoingRecord

_READERS = 2  # threads; the sending has a core's work of its own
_TOGETHER = 100  # records that a sink is given at once
_NO_INSTANCE = frozenset({Reason.INSTANCE_MISSING, Reason.INSTANCE_FIELD_MISSING})


class RecordSink(Protocol):
    """Where records go; `service.publisher.Publisher` is one."""

    def send(self, records: Iterable[OutgoingRecord]) -> None:
        """Send records, in their order."""

    def wait(self, seconds: float) -> None:
        """Let time pass; none where it is negative."""

    def finish(self) -> int:
        """Wait until every record has arrived; how many that are."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was sent.

    Attributes:
        records: records that the topic has taken.
        unreadable: how many of them are not of the format and will be dead letters.
        first_problem: the first of those, with its place; None where there is none.
        first_ns: the first time that a record has; None where none has one.
    """

    records: int
    unreadable: int
    first_problem: str | None
    first_ns: int | None


def publish_trace(
    windows: Iterable[Window],
    sink: RecordSink,
    trace_format: TraceFormat,
    *,
    source: str,
    topic_format: FormatName = FormatName.NATIVE,
    raw: bool = False,
    binary: bool = False,
    instance_id: str | None = None,
    named: bool = False,
    speed: float | None = None,
    limit: int | None = None,
    progress: Callable[[int], Any] = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> Published:
    """Send a trace as request events, whatever its format, or as it is.

    What becomes no request event is sent as it is, with its format in a header: a write event, to be counted and
    ignored; a registration; a request whose keys only the registered block size makes clear; a line that is not of the
    format, which becomes a dead letter that says why. But where the very first one is not, the format is taken to be
    wrong and nothing is sent.

    Args:
        windows: of records; blank ones are left out.
        sink: where to.
        trace_format: how to read a line.
        source: name of the trace, for errors.
        topic_format: of records on the topic whose headers name none.
        raw: send every record as it is.
        binary: send request events in binary instead of JSON.
        instance_id: the instance of lines that name none.
        named: tell each request's instance in a header too, for readers that would take another one; and of a line
            that is not of the format, that it has none.
        speed: so many times as fast as the trace's own times say; None: as fast as it goes.
        limit: at most so many records.
        progress: told the number of records sent, now and then.
        stop: ends the waiting for windows, also in another thread; called where no more are wanted.

    Raises:
        TraceError: the first line is not of the format, or there is none.
        PublishError: the trace can't be read to its end; says how much of it was sent.
        OptionError: speed is not a positive number, or raw and binary are both asked for.
    """
    if speed is not None and not 0 < speed < float("inf"):
        raise OptionError(f"speed {speed} is not a positive number; 1 keeps the trace's own pace")
    if raw and binary:
        raise OptionError("raw and binary exclude each other: records are sent as they are, or as request events")
    form = OutgoingForm(trace_format, topic_format, raw, binary, instance_id, named)
    pace, together = (None, _TOGETHER) if speed is None else (_Pace(speed, sink), 1)
    sent = unreadable = 0
    first_problem: str | None = None
    first_ns: int | None = None
    arrived = ((window, time.time_ns()) for window in windows)
    with (
        ThreadPoolExecutor(_READERS, "litehit-publish") as pool,
        closing(read_ahead(arrived, lambda window: form.of(*window), pool, _READERS, stop)) as coming,
    ):
        # Of a limit's records none is waited for beyond the last.
        while (left := None if limit is None else limit - sent) != 0:
            try:
                outgoing = next(coming, None)
            except (TraceError, OSError) as error:
                if not sent:
                    raise
                raise PublishError(
                    f"{error}; the topic has the {counted(sink.finish(), 'record')} before that: mend the file, and "
                    f"publish it into a new store or only what follows, or these count twice"
                ) from error
            if outgoing is None:
                if not sent:
                    raise TraceError(source, None, "holds no record to publish; see that it is the right file")
                break
            if left is not None:
                outgoing = outgoing.first(left)
            if outgoing.refused:
                row, number, why = outgoing.refused[0]
                line = None if isinstance(why, PlacedError) else number
                if sent + row == 0:
                    # A record that names no instance may well be of the format.
                    remedy = "" if why.reason in _NO_INSTANCE else f"; is it of format {trace_format.name}?"
                    raise TraceError(source, line, f"{why}{remedy}")
                unreadable += len(outgoing.refused)
                first_problem = first_problem or (str(why) if line is None else f"line {line}: {why}")
            first_ns = outgoing.first_ns if first_ns is None else first_ns
            for first in range(0, len(outgoing.values), together):
                due_ns = outgoing.times_ns[first]
                if pace is not None and due_ns is not None:
                    pace.wait_for(due_ns)
                end = min(first + together, len(outgoing.values))
                sink.send(outgoing.records(first, end))
                sent += end - first
                progress(sent)
    return Published(sink.finish(), unreadable, first_problem, first_ns)


class _Pace:
    """Keeps the distances of a trace's times, divided by a factor."""

    def __init__(self, speed: float, sink: RecordSink) -> None:
        self._speed = speed
        self._sink = sink
        self._start: tuple[float, int] | None = None

    def wait_for(self, timestamp_ns: int) -> None:
        if self._start is None:
            self._start = time.monotonic(), timestamp_ns
        began, first_ns = self._start
        due = began + (timestamp_ns - first_ns) / NS_PER_S / self._speed
        self._sink.wait(due - time.monotonic())
