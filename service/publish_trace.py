"""Sending a trace to the requests topic, record by record, in its order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from litehit.errors import OptionError, TraceError
from service.event_json import event_json
from service.formats.base import FormatError, RecordContext, TraceFormat


class RecordSink(Protocol):
    """Where records go; `service.publisher.Publisher` is one."""

    def send(self, key: str | None, value: bytes) -> None:
        """Send one record."""

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
        first_problem: the first of those, with its line; None where there is none.
    """

    records: int
    unreadable: int
    first_problem: str | None


def publish_trace(
    lines: Iterable[bytes],
    sink: RecordSink,
    trace_format: TraceFormat,
    *,
    source: str,
    instance_id: str | None = None,
    speed: float | None = None,
    limit: int | None = None,
    progress: Callable[[int], Any] = lambda _: None,
) -> Published:
    """Send a trace as request events, whatever its format.

    A write event is sent as it is, to be counted and ignored. So is a line that is not of the format, and it becomes a
    dead letter that says why; but where the very first one is not, the format is taken to be wrong and nothing is sent.

    Args:
        lines: one record each; blank ones are left out.
        sink: where to.
        trace_format: how to read a line.
        source: name of the trace, for errors.
        instance_id: the instance of lines that name none.
        speed: so many times as fast as the trace's own times say; None: as fast as it goes.
        limit: at most so many records.
        progress: told the number of records sent.

    Raises:
        TraceError: the first line is not of the format.
        OptionError: speed is not a positive number.
    """
    if speed is not None and not 0 < speed < float("inf"):
        raise OptionError(f"speed {speed} is not a positive number; 1 keeps the trace's own pace")
    pace = None if speed is None else _Pace(speed, sink)
    sent = unreadable = 0
    first_problem: str | None = None
    for number, line in enumerate(lines, start=1):
        if sent == limit:
            break
        if not line.strip():
            continue
        key, value = instance_id, line
        try:
            request = trace_format.parse(line, RecordContext(instance_id, number, time.time_ns()))
        except FormatError as error:
            if not sent:
                raise TraceError(source, number, f"{error}; is it of format {trace_format.name}?") from None
            unreadable += 1
            first_problem = first_problem or f"line {number}: {error}"
        else:
            if request is not None:
                key, value = request.instance_id, event_json(request)
                if pace is not None:
                    pace.wait_for(request.timestamp_ns)
        sink.send(key, value)
        sent += 1
        progress(sent)
    return Published(sink.finish(), unreadable, first_problem)


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
        due = began + (timestamp_ns - first_ns) / 1e9 / self._speed
        self._sink.wait(due - time.monotonic())
