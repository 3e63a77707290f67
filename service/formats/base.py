"""The protocol behind which every input format stands."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from typing import NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

from pydantic_core import ErrorDetails

from litehit.curves import Int64Array
from litehit.errors import InvalidRequest
from litehit.registration import Registration
from litehit.request import Request
from litehit.window import Window
from litehit.window_requests import WindowRequests
from schemas.dead_letter import Reason

P = ParamSpec("P")
T = TypeVar("T")


class FormatError(InvalidRequest):
    """A record is not of its format.

    Attributes:
        reason: the stable code.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


Content: TypeAlias = Request | Registration | None
"""What stands in a record: a request; a registration, where the format has any; None for a record that is recognised
and ignored, such as a write event."""


class RecordContext(NamedTuple):
    """What is known of a record without reading it.

    Attributes:
        instance_id: the instance of a record that names none; None where there is no such default.
        position: line number from 1, or offset.
        timestamp_ns: the time of a record that carries none, in nanoseconds; None where there is no such time.
        named: the instance of the record, whatever it states, where its publisher has told it; else None.
    """

    instance_id: str | None
    position: int
    timestamp_ns: int | None
    named: str | None = None


class PlainRequests(NamedTuple):
    """The requests of a window that were read all at once.

    Attributes:
        requests: R requests.
        places: int64[R], ascending: the place of each one's record in the window.
        left: int64[L], ascending: places of the records that `parse` has to read; the window's others are blank.
    """

    requests: WindowRequests
    places: Int64Array
    left: Int64Array


def or_error(read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | FormatError:
    """What a call gives, or the `FormatError` that it raises."""
    try:
        return read(*arguments, **named)
    except FormatError as error:
        return error


class TraceFormat(Protocol):
    """One input format.

    Attributes:
        reorder_seconds: a file's records are put in order of their times where they stand so far apart; 0: they are
            in order.
    """

    reorder_seconds: float = 0.0

    @property
    def name(self) -> str:
        """The format's name in `--format` and in the header `litehit-format`."""
        ...

    def parse(self, record: bytes, context: RecordContext) -> Content:
        """Read one record. Safe to call from several threads.

        Raises:
            FormatError: the record is not of this format, or its instance or time is known neither from the record
                nor from the context.
        """
        ...

    def parse_many(self, records: Sequence[bytes], contexts: Sequence[RecordContext]) -> list[Content | FormatError]:
        """What `parse` makes of each of many records, the error in the place of what it refuses."""
        return [or_error(self.parse, record, context) for record, context in zip(records, contexts, strict=True)]

    def read_plain(self, window: Window, instance_id: str | None) -> PlainRequests | None:
        """Read the plain records of a window at once, to what `parse` makes of each; None: it reads none so.

        Safe to call from several threads.

        Args:
            window: the records.
            instance_id: the instance of records that name none; None where there is no such default.
        """
        return None


def instance_of(stated: str | None, context: RecordContext) -> str:
    """The record's instance, else the context's."""
    instance_id = context.instance_id if stated is None else stated
    if instance_id is None:
        raise FormatError(
            Reason.INSTANCE_MISSING,
            "the record names no instance_id and no default is set; add the field, send it as the record's key, "
            "or name one with --instance where the trace is published or replayed",
        )
    return instance_id


def time_of(stated_ns: int | None, context: RecordContext, field: str) -> int:
    """The record's time in nanoseconds, else the context's."""
    timestamp_ns = context.timestamp_ns if stated_ns is None else stated_ns
    if timestamp_ns is None:
        raise FormatError(Reason.TIME_MISSING, f"{field} is absent and the record has no time of its own; add {field}")
    return timestamp_ns


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: JSON can escape half of a surrogate pair, which is no character."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_no_text(record: bytes) -> None:
    """Raise FormatError for a record of no bytes, or one whose first are no part of JSON but an editor's mark."""
    if not record:
        raise FormatError(Reason.EMPTY_VALUE, "the record is empty; send one JSON object")
    if record.startswith(BOM_UTF8):
        raise FormatError(
            Reason.MALFORMED_JSON,
            "the record begins with a byte order mark; send UTF-8 without one (a file: save it so)",
        )


def invalid_field(location: Sequence[int | str], details: ErrorDetails) -> str:
    """The sentence of a model's error, for a person."""
    message = details["msg"].removeprefix("Input ").replace("should", "must", 1)
    return f"{'.'.join(map(str, location))} = {shown(details['input'])}: {message}"


def shown(value: object, limit: int = 60) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
