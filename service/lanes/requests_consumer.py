"""The lane worker's consumer: its properties, its messages as records, and what it asks the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from service.lanes.restore import Committed
from service.records import Headers, SourceRecord
from service.settings import Settings

_ASK_SECONDS = 2.0  # short: other lanes of the process wait meanwhile, and the question is put again
_STATISTICS_MS = 1000


def requests_consumer(settings: Settings, bootstrap: str, on_statistics: Callable[[str], None]) -> Consumer:
    """A member of the lanes' group, not subscribed yet."""
    properties: dict[str, Any] = {
        "group.id": settings.group_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "partition.assignment.strategy": "cooperative-sticky",
        # Also what makes the broker wait with committed offsets until an orphaned transaction is decided.
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,
        "queued.max.messages.kbytes": 65536,
        "statistics.interval.ms": _STATISTICS_MS,
        "stats_cb": on_statistics,
    }
    return Consumer(settings.client_config(bootstrap, **properties))


def source_record(message: Message) -> SourceRecord:
    """A message that is no error, as a record."""
    kind, timestamp_ms = message.timestamp()
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None  # noqa: S101
    assert partition is not None  # noqa: S101
    assert offset is not None  # noqa: S101
    return SourceRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE or timestamp_ms < 0 else timestamp_ms,
        headers=_headers(message),
    )


def _headers(message: Message) -> Headers:
    # librdkafka hands them over as a list of pairs with values in bytes; its types also tell what `produce` takes.
    return tuple(cast("list[tuple[str, bytes | None]]", message.headers() or []))


def committed_offset(consumer: Consumer, topic: str, partition: int) -> Committed:
    """What the group has committed; raises KafkaException where the broker does not answer in time."""
    (answer,) = consumer.committed([TopicPartition(topic, partition)], timeout=_ASK_SECONDS)
    if answer.error is not None:
        raise KafkaException(answer.error)
    if answer.offset < 0:
        return Committed(None, None)
    return Committed(answer.offset, answer.metadata or None)


def watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """First offset and last stable offset of the log; raises KafkaException where the broker does not answer."""
    answer = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_ASK_SECONDS)
    if answer is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return answer


def read_from(consumer: Consumer, topic: str, partition: int, offset: int) -> None:
    """Read an assigned partition from an offset, dropping whatever was fetched of it before."""
    # Not `seek`, which fails while the partition's fetcher starts. A paused partition would stay paused.
    place = TopicPartition(topic, partition, offset)
    consumer.resume([place])
    consumer.incremental_unassign([place])
    consumer.incremental_assign([place])
