"""From librdkafka's messages to records."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from service.records import SourceRecord


def source_record(message: Message) -> SourceRecord:
    """A consumed message as a plain value."""
    # librdkafka's types also tell what `produce` takes; a consumed message always has its place, and headers as pairs.
    # Each record is one call of this, so none is made for a type alone.
    consumed: Any = message
    kind, timestamp_ms = consumed.timestamp()
    headers = consumed.headers()
    return SourceRecord(
        consumed.topic(),
        consumed.partition(),
        consumed.offset(),
        consumed.key(),
        consumed.value(),
        None if kind == TIMESTAMP_NOT_AVAILABLE or timestamp_ms < 0 else timestamp_ms,
        tuple(headers) if headers else (),
    )
