"""From librdkafka's messages to records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from service.records import Headers, SourceRecord, SourceRecords

# librdkafka's types also tell what `produce` takes; a consumed message always has its place, and headers as pairs.
# Each record is a call of all of these, so none is made for a type alone.
_topic: Any = Message.topic
_partition: Any = Message.partition
_offset: Any = Message.offset
_key: Any = Message.key
_value: Any = Message.value
_timestamp: Any = Message.timestamp
_headers: Any = Message.headers


def source_record(message: Message) -> SourceRecord:
    """A consumed message as a plain value."""
    (record,) = _records([message])
    return record


def source_records(messages: Iterable[Message]) -> dict[int, SourceRecords]:
    """Consumed messages of one topic by partition, in the order in which they came."""
    by_partition: dict[int, list[Message]] = {}
    for partition, run in groupby(messages, _partition):
        by_partition.setdefault(partition, []).extend(run)
    return {partition: _records(own) for partition, own in by_partition.items()}


def _records(messages: list[Message]) -> SourceRecords:
    """Messages of one partition, at least one. Calls are made by `map`, in a third of a loop's time."""
    headers = list(map(_headers, messages))
    return SourceRecords(
        _topic(messages[0]),
        _partition(messages[0]),
        list(map(_offset, messages)),
        list(map(_key, messages)),
        list(map(_value, messages)),
        [None if kind == TIMESTAMP_NOT_AVAILABLE or at < 0 else at for kind, at in map(_timestamp, messages)],
        list(map(_pairs, headers)) if any(headers) else None,
    )


def _pairs(headers: Any) -> Headers:
    return tuple(headers) if headers else ()
