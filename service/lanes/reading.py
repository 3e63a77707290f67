"""From records to requests, before any lane has seen them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import FORMAT_HEADER, Reason
from service import formats
from service.formats.base import FormatError, RecordContext, TraceFormat
from service.lanes.counts import Ignored
from service.records import SourceRecord

_NS_PER_MS = 1_000_000


class Poison(NamedTuple):
    """Why a record becomes a dead letter."""

    reason: Reason
    sentence: str


class ReadRecord(NamedTuple):
    """A record and what stands in it.

    Attributes:
        source: the record.
        content: its request or registration; or why it is ignored; or what is wrong with it.
    """

    source: SourceRecord
    content: Request | Registration | Ignored | Poison


def read_records(trace_format: TraceFormat, records: Iterable[SourceRecord]) -> list[ReadRecord]:
    """What stands in some records. It depends on nothing before them, and any thread may ask.

    Args:
        trace_format: of records whose headers name none.
        records: of the requests topic.
    """
    return [ReadRecord(record, _read(trace_format, record)) for record in records]


def _read(trace_format: TraceFormat, record: SourceRecord) -> Request | Registration | Ignored | Poison:
    if record.value is None:
        return Poison(Reason.EMPTY_VALUE, "the record's value is null (a tombstone); send one JSON object")
    try:
        named = _named_format(record) if record.headers else None
        request = (named or trace_format).parse(record.value, _context(record))
    except FormatError as error:
        return Poison(error.reason, str(error))
    return Ignored.WRITE if request is None else request


def _named_format(record: SourceRecord) -> TraceFormat | None:
    """The format that the record's headers name, the last one that does; None where none does."""
    for header, value in reversed(record.headers):
        if header == FORMAT_HEADER:
            name = (value or b"").decode(errors="replace")
            if name not in formats.FORMATS:
                raise FormatError(
                    Reason.UNKNOWN_FORMAT,
                    f"the header {FORMAT_HEADER} = {name!r} names no format; send one of {', '.join(formats.FORMATS)}",
                )
            return formats.FORMATS[name]
    return None


def _context(record: SourceRecord) -> RecordContext:
    try:
        instance_id = record.key.decode() if record.key else None
    except UnicodeDecodeError:
        instance_id = None
    timestamp_ns = None if record.timestamp_ms is None else record.timestamp_ms * _NS_PER_MS
    return RecordContext(instance_id, record.offset, timestamp_ns)
