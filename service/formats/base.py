"""What the input formats share: what a record is read to, and how it is refused."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from pydantic_core import ErrorDetails

from litehit.errors import InvalidRequest
from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason


class FormatError(InvalidRequest):
    """A record is not of its format.

    Attributes:
        reason: the stable code.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class PlacedError(FormatError):
    """A record is not of its format; the sentence names its place, which its number in the trace does not."""


Content: TypeAlias = Request | Registration | None
"""What stands in a record: a request; a registration, where the format has any; None for a record that is recognised
and ignored, such as a write event."""


class RecordContext(NamedTuple):
    """What is known of a record without reading it.

    Attributes:
        instance_id: the instance of a record that names none; None where there is no such default.
        position: line number from 1, or offset.
        timestamp_ns: the time of a record that carries none, in nanoseconds; None where there is no such time.
        named: the instance of the record, whatever it states, where its publisher has told it; empty where it has told
            that there is none; else None.
    """

    instance_id: str | None
    position: int
    timestamp_ns: int | None
    named: str | None = None


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
