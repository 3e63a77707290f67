"""The lanes' consumer: a member of their group, in terms of partitions and records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from service.lanes.membership import Membership
from service.settings import Settings

log = structlog.get_logger()

_STATISTICS_MS = 1000


class GroupListener(Protocol):
    """What the group tells; called inside `poll` and `close`, so never while a lane processes."""

    def assigned(self, partitions: Sequence[int]) -> None:
        """These partitions are this member's from now on; they are paused."""

    def revoked(self, partitions: Sequence[int]) -> None:
        """These partitions are about to be another member's, once this returns."""

    def lost(self, partitions: Sequence[int]) -> None:
        """These partitions are another member's already."""

    def end_offset(self, partition: int, offset: int) -> None:
        """A partition's last stable offset."""

    def heard(self) -> None:
        """A broker is connected."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll brought.

    Attributes:
        messages: the records, those of a partition in offset order.
        ends: partitions read up to their end, and that offset; markers of transactions count in it.
        gone: partitions whose log does not hold the offset that was to be read.
        full: it brought as many records as one poll may: there are more, most likely.
    """

    messages: Sequence[Message] = ()
    ends: dict[int, int] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    full: bool = False


class RequestsConsumer:
    """A member of the lanes' consumer group.

    Attributes:
        client: librdkafka's consumer.
        membership: vouches for this member when offsets are handed over.
    """

    def __init__(self, settings: Settings, bootstrap: str, listener: GroupListener) -> None:
        self._topic = settings.requests_topic
        self._records, self._seconds = settings.batch_records, settings.batch_seconds
        self._listener = listener
        properties: dict[str, Any] = {
            "group.id": settings.group_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "partition.assignment.strategy": "cooperative-sticky",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # How long the partitions of a process that was killed wait; the default is 45 s.
            "session.timeout.ms": 10_000,
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 100,  # a partition that begins waits for the fetch that others are in
            "queued.max.messages.kbytes": 65536,
            "statistics.interval.ms": _STATISTICS_MS,
            "stats_cb": self._on_statistics,
        }
        self.client = Consumer(settings.client_config(bootstrap, **properties))
        self.membership = Membership(self.client)

    def subscribe(self) -> None:
        """Join the group."""
        self.client.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def poll(self) -> Polled:
        """Records for a batch, or a few batches of large ones.

        Raises:
            KafkaException: the consumer is of no more use.
        """
        messages = self.client.consume(self._records, self._seconds)
        events = [message for message in messages if message.error() is not None]
        records = [message for message in messages if message.error() is None] if events else messages
        polled = Polled(records, full=len(messages) == self._records)
        for event in events:
            _note_event(event, polled)
        return polled

    def pause(self, partitions: Iterable[int]) -> None:
        """Fetch nothing of these partitions; what was fetched and not polled is fetched again later."""
        self.client.pause(self._places(partitions))

    def resume(self, partitions: Iterable[int]) -> None:
        """Go on where `pause` left off."""
        self.client.resume(self._places(partitions))

    def read_from(self, partition: int, offset: int) -> None:
        """Read an assigned partition from an offset, dropping whatever was fetched of it before.

        Raises:
            KafkaException: the partition is not this member's any more.
        """
        # Not `seek`, which fails while the partition's fetcher starts. A paused partition would stay paused.
        place = [TopicPartition(self._topic, partition, offset)]
        self.client.resume(place)
        self.client.incremental_unassign(place)
        self.client.incremental_assign(place)

    def close(self) -> None:
        """Leave the group."""
        self.client.close()

    def _places(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition) for partition in partitions]

    def _on_assign(self, client: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self.membership.joined()
        # Where to read from takes questions to the broker, which must not hold up the partitions that are read
        # already; so these are taken paused, to be begun by `read_from`.
        places = [TopicPartition(self._topic, partition.partition, 0) for partition in partitions]
        client.incremental_assign(places)
        if places:
            client.pause(places)
        numbers = [place.partition for place in places]
        log.info("partitions_assigned", partitions=numbers)
        self._listener.assigned(numbers)

    def _on_revoke(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        numbers = [partition.partition for partition in partitions]
        log.info("partitions_revoked", partitions=numbers)
        self._listener.revoked(numbers)

    def _on_lost(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        numbers = [partition.partition for partition in partitions]
        log.warning("partitions_lost", partitions=numbers)
        self._listener.lost(numbers)

    def _on_statistics(self, statistics: str) -> None:
        told = json.loads(statistics)
        if any(broker["state"] == "UP" for broker in told["brokers"].values()):
            self._listener.heard()
        partitions = told["topics"].get(self._topic, {}).get("partitions", {})
        for number, figures in partitions.items():
            if figures["ls_offset"] >= 0:
                self._listener.end_offset(int(number), figures["ls_offset"])


def _note_event(message: Message, polled: Polled) -> None:
    error, partition, offset = message.error(), message.partition(), message.offset()
    if error is None:
        return
    if error.code() == KafkaError._PARTITION_EOF and partition is not None and offset is not None:
        polled.ends[partition] = offset
    elif error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
        log.warning("offset_gone", partition=partition, offset=offset, error=error.str())
        polled.gone.append(partition)
    elif error.fatal():
        raise KafkaException(error)
    else:
        log.warning("consumer_event", partition=partition, error=error.str())
