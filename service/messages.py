"""From librdkafka's messages to records."""

from __future__ import annotations

from typing import cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from service.records import Headers, SourceRecord


def source_record(message: Message) -> SourceRecord:
    """A consumed message as a plain value."""
    kind, timestamp_ms = message.timestamp()
    # librdkafka's types also tell what `produce` takes; a consumed message always has its place, and headers as pairs.
    return SourceRecord(
        topic=cast("str", message.topic()),
        partition=cast("int", message.partition()),
        offset=cast("int", message.offset()),
        key=message.key(),
        value=message.value(),
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE or timestamp_ms < 0 else timestamp_ms,
        headers=cast("Headers", tuple(message.headers() or ())),
    )
