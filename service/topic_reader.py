"""A topic read from one fixed place to another, as a read_committed reader sees it."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Self

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from service.errors import TopicUnreadable
from service.messages import source_record
from service.records import SourceRecord
from service.settings import Settings

log = structlog.get_logger()

_ASK_SECONDS = 10.0
_CONSUME_RECORDS = 500
_CONSUME_SECONDS = 0.1
_QUEUED_KBYTES = 16 * 1024
# Kafka aborts what a dead process left open when its time is up, but looks only every ten seconds.
_STALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a partition's log holds.

    Attributes:
        low: its first offset.
        stable: its last stable offset; a read_committed reader comes so far now.
        end: one past its last record, of transactions that are not decided too.
    """

    low: int
    stable: int
    end: int


class TopicReader:
    """Reads partitions one after another; it joins no group and commits nothing by itself.

    Args:
        settings: client properties.
        bootstrap: the broker's address.
        topic: what to read.
        group_id: whose committed offsets `committed` tells.

    Attributes:
        client: librdkafka's consumer.
    """

    def __init__(self, settings: Settings, bootstrap: str, topic: str, group_id: str) -> None:
        self.topic = topic
        self._stall_seconds = _STALL_SECONDS + settings.transaction_timeout_seconds
        properties = {
            "group.id": group_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            # Also what makes `committed` wait until an open transaction of the group is decided.
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 100,
            "queued.max.messages.kbytes": _QUEUED_KBYTES,
        }
        self.client = Consumer(settings.client_config(bootstrap, **properties))
        self._uncommitted = Consumer(
            settings.client_config(bootstrap, **properties | {"isolation.level": "read_uncommitted"})
        )

    def bounds(self, partition: int) -> Bounds:
        """What a partition's log holds now.

        Raises:
            TopicUnreadable: the broker does not answer.
        """
        low, stable = self._watermarks(self.client, partition)
        return Bounds(low, stable, self._watermarks(self._uncommitted, partition)[1])

    def committed(self, partition: int) -> tuple[int, str | None]:
        """What the group has committed, offset and metadata, once no transaction is open that commits more.

        A negative offset means that it has committed nothing.

        Raises:
            TopicUnreadable: the broker does not answer, or a transaction stays open.
        """
        deadline = time.monotonic() + self._stall_seconds
        while True:
            try:
                (answer,) = self.client.committed([TopicPartition(self.topic, partition)], timeout=_ASK_SECONDS)
                error = answer.error
            except KafkaException as exception:
                error = exception.args[0]
            if error is None:
                return answer.offset, answer.metadata
            if not error.retriable() or time.monotonic() > deadline:
                raise self._unreadable(partition, error.str())
            time.sleep(0.1)

    def records(self, partition: int, start: int, end: int) -> Generator[SourceRecord, None, None]:
        """The records `start:end` of a partition, in offset order; those of aborted transactions are not there.

        Where a transaction before `end` is not decided yet, it waits for that. Close it before the next partition.

        Raises:
            TopicUnreadable: the log does not hold `start` any more, or nothing comes.
        """
        if start >= end:
            return
        place = TopicPartition(self.topic, partition, start)
        self.client.assign([place])
        try:
            progress = time.monotonic()
            while True:
                for message in self.client.consume(_CONSUME_RECORDS, _CONSUME_SECONDS):
                    error = message.error()
                    if error is None:
                        record = source_record(message)
                        if record.offset >= end:
                            return
                        yield record
                    elif error.code() == KafkaError._PARTITION_EOF:
                        if (message.offset() or 0) >= end:
                            return
                    elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                        raise self._unreadable(partition, f"offset {message.offset()} expired before it was read")
                    else:
                        log.warning("reader_event", topic=self.topic, partition=partition, error=error.str())
                        continue
                    progress = time.monotonic()
                if time.monotonic() - progress > self._stall_seconds:
                    raise self._unreadable(partition, f"nothing came for {self._stall_seconds:.0f} s before {end}")
        finally:
            self.client.unassign()

    def close(self) -> None:
        """End."""
        self.client.close()
        self._uncommitted.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watermarks(self, client: Consumer, partition: int) -> tuple[int, int]:
        try:
            answer = client.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=_ASK_SECONDS)
        except KafkaException as error:
            raise self._unreadable(partition, error.args[0].str()) from error
        if answer is None:
            raise self._unreadable(partition, "the broker does not answer")
        return answer

    def _unreadable(self, partition: int, why: str) -> TopicUnreadable:
        return TopicUnreadable(
            f"{self.topic}/{partition}: {why}; see that Kafka runs and may be reached, and try again"
        )
