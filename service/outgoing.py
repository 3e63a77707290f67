"""What becomes of a trace's records on their way to the requests topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from litehit.registration import Registration
from litehit.window import Window
from litehit.window_requests import WindowRequests
from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER
from service.event_json import events_json
from service.event_protobuf import protobuf_events
from service.format_names import FormatName
from service.formats.base import FormatError
from service.formats.contents import Other
from service.formats.trace_format import TraceFormat
from service.formats.window_contents import window_contents

Headers: TypeAlias = dict[str, str | bytes | None]
"""As a producer takes them."""

OutgoingRecord: TypeAlias = tuple[str | None, bytes, Headers]
"""Key, value and headers, which several records may share."""


class Refused(NamedTuple):
    """A record that is not of the trace's format.

    Attributes:
        row: which one of the outgoing records it is.
        number: its number in the trace.
        why: what is wrong with it.
    """

    row: int
    number: int
    why: FormatError


class Outgoing(NamedTuple):
    """R records as they are sent, in order.

    Attributes:
        keys, values, headers: R of each.
        times_ns: R times of requests; None where the record is no request.
        refused: those among them that are not of the format, in order.
    """

    keys: Sequence[str | None]
    values: Sequence[bytes]
    headers: Sequence[Headers]
    times_ns: Sequence[int | None]
    refused: Sequence[Refused]

    @property
    def first_ns(self) -> int | None:
        """The first time that there is."""
        return next((time for time in self.times_ns if time is not None), None)

    def first(self, count: int) -> Outgoing:
        """The first of them, at most so many."""
        if count >= len(self.values):
            return self
        refused = [each for each in self.refused if each.row < count]
        return Outgoing(self.keys[:count], self.values[:count], self.headers[:count], self.times_ns[:count], refused)

    def records(self, first: int, end: int) -> Iterator[OutgoingRecord]:
        """The records of rows `first` to `end`, or to the last."""
        return zip(self.keys[first:end], self.values[first:end], self.headers[first:end], strict=True)


class _Part(NamedTuple):
    """Some of a window's records: their places in it, and the columns of `Outgoing`."""

    places: Sequence[int]
    keys: Sequence[str | None]
    values: Sequence[bytes]
    headers: Sequence[Headers]
    times_ns: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class OutgoingForm:
    """How a trace's records are sent.

    Attributes:
        trace_format: how to read a record.
        topic_format: of records on the topic whose headers name none.
        raw: every record is sent as it is.
        binary: request events are in binary instead of JSON.
        instance_id: the instance of records that name none.
        named: each request's instance is told in a header too; an empty one keeps what was refused here from being
            taken for a request of another instance there.
    """

    trace_format: TraceFormat
    topic_format: FormatName
    raw: bool
    binary: bool
    instance_id: str | None
    named: bool

    def of(self, window: Window, time_ns: int) -> Outgoing:
        """The records of a window, at a time that those have which state none. Safe to call from several threads.

        What is no request event is as it was: see `publish_trace`.
        """
        requests, others = window_contents(self.trace_format, window, self.instance_id, time_ns)
        is_event = np.full(len(requests), not self.raw) & ~requests.rounded_up
        if is_event.all() and not others:
            return Outgoing(*self._events(requests)[1:], ())
        lines = [line for _, line in window.records()]
        parts = (
            self._events(requests.select(np.flatnonzero(is_event))),
            self._as_they_are(requests.select(np.flatnonzero(~is_event)), lines),
            self._others(others, lines),
        )
        columns: list[list[Any]] = [[*chain.from_iterable(column)] for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0]).tolist()
        places, keys, values, headers, times_ns = ([column[index] for index in order] for column in columns)
        found = dict(others)
        refused = [
            Refused(row, window.numbers[place], why)
            for row, place in enumerate(places)
            if isinstance(why := found.get(place), FormatError)
        ]
        return Outgoing(keys, values, headers, times_ns, refused)

    def _events(self, requests: WindowRequests) -> _Part:
        if self.binary:
            return self._part(requests, protobuf_events(requests), FormatName.NATIVE_PROTOBUF)
        return self._part(requests, events_json(requests), FormatName.NATIVE)

    def _as_they_are(self, requests: WindowRequests, lines: Sequence[bytes]) -> _Part:
        return self._part(requests, [lines[place] for place in requests.numbers.tolist()], self.trace_format.name)

    def _part(self, requests: WindowRequests, values: list[bytes], sent_format: str) -> _Part:
        instances, instance_of = requests.instances, requests.instance_of.tolist()
        headers = [self._headers(sent_format, instance_id if self.named else None) for instance_id in instances]
        return _Part(
            requests.numbers.tolist(),
            [instances[index] for index in instance_of],
            values,
            [headers[index] for index in instance_of],
            requests.columns.timestamps_ns.tolist(),
        )

    def _others(self, others: Sequence[tuple[int, Other]], lines: Sequence[bytes]) -> _Part:
        headers = self._headers(self.trace_format.name, None)
        of_refused = self._headers(self.trace_format.name, "" if self.named else None)
        return _Part(
            [place for place, _ in others],
            [other.instance_id if isinstance(other, Registration) else self.instance_id for _, other in others],
            [lines[place] for place, _ in others],
            [of_refused if isinstance(other, FormatError) else headers for _, other in others],
            [None] * len(others),
        )

    def _headers(self, sent_format: str, told: str | None) -> Headers:
        of_format: Headers = {} if sent_format == self.topic_format else {FORMAT_HEADER: sent_format}
        return of_format if told is None else {**of_format, INSTANCE_HEADER: told}
