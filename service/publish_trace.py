"""Sending a trace to the requests topic, record by record, in its order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice, starmap
from typing import Any, Protocol

from litehit.errors import OptionError, TraceError
from litehit.registration import Registration
from litehit.request import Request
from litehit.time_units import NS_PER_S
from litehit.window import Window
from litehit.windows_ahead import read_ahead
from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER
from service.event_json import event_json
from service.format_names import FormatName
from service.formats.base import FormatError, RecordContext
from service.formats.native_protobuf import protobuf_event
from service.formats.trace_format import PlainRequests, TraceFormat


class RecordSink(Protocol):
    """Where records go; `service.publisher.Publisher` is one."""

    def send(self, key: str | None, value: bytes, headers: Mapping[str, str] | None = None) -> None:
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
        named: tell each request's instance in a header too, for readers that would take another one.
        speed: so many times as fast as the trace's own times say; None: as fast as it goes.
        limit: at most so many records.
        progress: told the number of records sent.
        stop: ends the waiting for windows, also in another thread; called where no more are wanted.

    Raises:
        TraceError: the first line is not of the format.
        OptionError: speed is not a positive number, or raw and binary are both asked for.
    """
    if speed is not None and not 0 < speed < float("inf"):
        raise OptionError(f"speed {speed} is not a positive number; 1 keeps the trace's own pace")
    if raw and binary:
        raise OptionError("raw and binary exclude each other: records are sent as they are, or as request events")
    encode, event_format = (protobuf_event, FormatName.NATIVE_PROTOBUF) if binary else (event_json, FormatName.NATIVE)
    pace = None if speed is None else _Pace(speed, sink)
    sent = unreadable = 0
    first_problem: str | None = None

    def read(window: Window) -> tuple[Window, PlainRequests | None]:
        return window, trace_format.read_plain(window, instance_id)

    with ThreadPoolExecutor(1, "litehit-publish") as pool, closing(read_ahead(windows, read, pool, 1, stop)) as coming:
        # Of a limit's records none is waited for beyond the last.
        for number, line, request_read in islice(chain.from_iterable(starmap(_records, coming)), limit):
            key, value, sent_format = instance_id, line, trace_format.name
            told: str | None = None
            request: Request | Registration | None = request_read
            try:
                if request is None:
                    request = trace_format.parse(line, RecordContext(instance_id, number, time.time_ns()))
            except FormatError as error:
                if not sent:
                    raise TraceError(source, number, f"{error}; is it of format {trace_format.name}?") from None
                unreadable += 1
                first_problem = first_problem or f"line {number}: {error}"
            else:
                if request is not None:
                    key = request.instance_id
                if isinstance(request, Request):
                    told = key if named else None
                    if not raw and not request.keys_rounded_up:
                        value, sent_format = encode(request), event_format
                    if pace is not None:
                        pace.wait_for(request.timestamp_ns)
            headers = {FORMAT_HEADER: None if sent_format == topic_format else sent_format, INSTANCE_HEADER: told}
            sink.send(key, value, {header: value for header, value in headers.items() if value is not None})
            sent += 1
            progress(sent)
    return Published(sink.finish(), unreadable, first_problem)


def _records(window: Window, plain: PlainRequests | None) -> Iterator[tuple[int, bytes, Request | None]]:
    """The records that are not blank: number, text, and the request where it is read already."""
    read = iter(()) if plain is None else zip(plain.places.tolist(), plain.requests.requests(), strict=True)
    # One at a time: thousands of requests that are held at once are work for the collector.
    coming = next(read, None)
    for place, (number, line) in enumerate(window.records()):
        if coming is not None and coming[0] == place:
            yield number, line, coming[1][1]
            coming = next(read, None)
        elif line.strip():
            yield number, line, None


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
