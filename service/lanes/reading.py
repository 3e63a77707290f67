"""From records to requests, before any lane has seen them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar, cast

from litehit.time_units import NS_PER_MS
from litehit.window_requests import WindowRequests
from schemas.dead_letter import FORMAT_HEADER, INSTANCE_HEADER, Reason
from service.formats import TopicFormats
from service.formats.base import FormatError, shown
from service.formats.contents import Contexts
from service.formats.contents import Other as OtherContent
from service.formats.trace_format import TraceFormat
from service.lanes.counts import Ignored
from service.lanes.read_records import Other, Poison, ReadRecords
from service.records import SourceRecord, SourceRecords

T = TypeVar("T")


def read_records(topic_formats: TopicFormats, records: SourceRecords) -> ReadRecords:
    """What stands in some records. It depends on nothing before them, and any thread may ask.

    Args:
        topic_formats: how they are read.
        records: of a partition of the requests topic, in offset order.
    """
    instances = list(map(_Keys(topic_formats.default_instance).__getitem__, records.keys))
    times_ns = [None if at is None else at * NS_PER_MS for at in records.timestamps_ms]
    others: list[tuple[int, Other]] = []
    requests: list[WindowRequests] = []
    for trace_format, alike in _by_format(topic_formats, records, others).items():
        rows = alike.rows
        values = cast("Sequence[bytes]", _at(records.values, rows))  # a record without one is among the others
        contexts = Contexts(_at(instances, rows), _at(records.offsets, rows), _at(times_ns, rows), alike.named)
        contents = trace_format.parse_many(values, contexts)
        if len(rows) < len(records):
            contents = contents.at(rows)
        requests.append(contents.requests)
        others.extend((row, _with_key(_other(other), records.keys[row])) for row, other in contents.others)
    return ReadRecords(records, _merged(requests), sorted(others, key=itemgetter(0)))


def _at(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Elements of some rows, or of all."""
    return column if len(rows) == len(column) else [column[row] for row in rows]


_TOMBSTONE = Poison(Reason.EMPTY_VALUE, "the record's value is null (a tombstone); send one JSON object")


class _Alike(NamedTuple):
    """Records of one format: their rows, and the instance that each one's header names, as `RecordContext.named`."""

    rows: Sequence[int]
    named: Sequence[str | None]


def _by_format(
    topic_formats: TopicFormats, records: SourceRecords, others: list[tuple[int, Other]]
) -> dict[TraceFormat, _Alike]:
    """The records by how they are read; those that can't be are added to the others."""
    # Nothing but a header tells one record to be read otherwise than the next.
    headers = records.headers if records.headers is not None else ((),) * len(records)
    unusual = [
        row for row, (own, value) in enumerate(zip(headers, records.values, strict=True)) if own or value is None
    ]
    if not unusual:
        return {topic_formats.usual: _Alike(range(len(records)), [None] * len(records))}
    told: list[tuple[TraceFormat, str | None] | None] = [(topic_formats.usual, None)] * len(records)
    for row in unusual:
        told[row] = None
        record = records[row]
        if record.value is None:
            others.append((row, _TOMBSTONE))
            continue
        try:
            named = _named_instance(record)
            told[row] = _format(topic_formats, record), named
        except FormatError as error:
            others.append((row, _other(error)))
    listed: dict[TraceFormat, tuple[list[int], list[str | None]]] = {}
    for row, how in enumerate(told):
        if how is not None:
            rows, names = listed.setdefault(how[0], ([], []))
            rows.append(row)
            names.append(how[1])
    return {trace_format: _Alike(*alike) for trace_format, alike in listed.items()}


class _Keys(dict[bytes | None, str | None]):
    """Instances by the records' keys, the same few in many records; a record without one is of the default."""

    def __init__(self, default: str | None) -> None:
        self._default = default

    def __missing__(self, key: bytes | None) -> str | None:
        try:
            instance_id = key.decode() if key else self._default
        except UnicodeDecodeError:
            instance_id = self._default
        self[key] = instance_id
        return instance_id


def _merged(parts: Sequence[WindowRequests]) -> WindowRequests:
    merged = WindowRequests.concatenate(parts[:1])
    for part in parts[1:]:
        merged = merged.merge(part, merged.numbers, part.numbers)
    return merged


def _other(read: OtherContent) -> Other:
    if read is None:
        return Ignored.WRITE
    return Poison(read.reason, str(read)) if isinstance(read, FormatError) else read


def _with_key(other: Other, key: bytes | None) -> Other:
    """Where a record's instance is missing that its key would have named, the sentence tells of the key too."""
    if not (key and isinstance(other, Poison) and other.reason is Reason.INSTANCE_MISSING):
        return other
    # A key in UTF-8 is an instance: none is missing.
    return Poison(other.reason, f"{other.sentence}; the record's key {shown(key)} is no UTF-8, so it names none")


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
        return told.decode()
    except UnicodeDecodeError:
        raise FormatError(
            Reason.INVALID_FIELD,
            f"the header {INSTANCE_HEADER} = {told!r} is no UTF-8; send an instance's id, or no such header",
        ) from None


def _header(record: SourceRecord, wanted: str) -> bytes | None:
    """The value of a header, the last one of that name; None where there is none."""
    for header, value in reversed(record.headers):
        if header == wanted:
            return value or b""
    return None
