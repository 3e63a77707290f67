"""From records to requests, before any lane has seen them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from litehit.registration import Registration
from litehit.request import Request
from litehit.time_units import NS_PER_MS
from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER, Reason
from service.formats import TopicFormats
from service.formats.base import Content, FormatError, RecordContext, TraceFormat
from service.lanes.counts import Ignored
from service.records import SourceRecord


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


def read_records(topic_formats: TopicFormats, records: Sequence[SourceRecord]) -> list[ReadRecord]:
    """What stands in some records. It depends on nothing before them, and any thread may ask.

    Args:
        topic_formats: how they are read.
        records: of the requests topic.
    """
    # Nothing but a header tells one record to be read otherwise than the next.
    usual = [record for record in records if record.value is not None and not record.headers]
    contents = iter(
        topic_formats.usual.parse_many(
            [record.value for record in usual if record.value is not None],
            [_context(topic_formats, record, None) for record in usual],
        )
    )
    return [
        ReadRecord(
            record,
            _read(topic_formats, record) if record.headers or record.value is None else _content(next(contents)),
        )
        for record in records
    ]


def _read(topic_formats: TopicFormats, record: SourceRecord) -> Request | Registration | Ignored | Poison:
    if record.value is None:
        return Poison(Reason.EMPTY_VALUE, "the record's value is null (a tombstone); send one JSON object")
    try:
        context = _context(topic_formats, record, _named_instance(record))
        return _content(_format(topic_formats, record).parse(record.value, context))
    except FormatError as error:
        return _content(error)


def _content(read: Content | FormatError) -> Request | Registration | Ignored | Poison:
    if read is None:
        return Ignored.WRITE
    return Poison(read.reason, str(read)) if isinstance(read, FormatError) else read


def _format(topic_formats: TopicFormats, record: SourceRecord) -> TraceFormat:
    told = _header(record, FORMAT_HEADER)
    if told is None:
        return topic_formats.usual
    name = told.decode(errors="replace")
    if name not in topic_formats.by_name:
        raise FormatError(
            Reason.UNKNOWN_FORMAT,
            f"the header {FORMAT_HEADER} = {name!r} names no format; send one of {', '.join(topic_formats.by_name)}",
        )
    return topic_formats.by_name[name]


def _named_instance(record: SourceRecord) -> str | None:
    told = _header(record, INSTANCE_HEADER)
    if told is None:
        return None
    try:
        name = told.decode()
    except UnicodeDecodeError:
        name = ""
    if not name:
        raise FormatError(
            Reason.INVALID_FIELD,
            f"the header {INSTANCE_HEADER} = {told!r} is empty or no UTF-8; send an instance's id, or no such header",
        )
    return name


def _header(record: SourceRecord, wanted: str) -> bytes | None:
    """The value of a header, the last one of that name; None where there is none."""
    for header, value in reversed(record.headers):
        if header == wanted:
            return value or b""
    return None


def _context(topic_formats: TopicFormats, record: SourceRecord, named: str | None) -> RecordContext:
    try:
        instance_id = record.key.decode() if record.key else topic_formats.default_instance
    except UnicodeDecodeError:
        instance_id = topic_formats.default_instance
    timestamp_ns = None if record.timestamp_ms is None else record.timestamp_ms * NS_PER_MS
    return RecordContext(instance_id, record.offset, timestamp_ns, named)
