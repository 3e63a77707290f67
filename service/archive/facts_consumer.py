"""The archiver's consumer: partitions of the facts topic, committed facts only, from offsets it is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from service.archive.decode import FetchedFacts, source_header
from service.settings import Settings

_log = structlog.get_logger()

_CONSUME_RECORDS = 500
_CONSUME_SECONDS = 0.05

# Of what librdkafka's stubs allow, what a consumer gets.
_Headers: TypeAlias = list[tuple[str, bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one poll brought.

    Attributes:
        facts: records, by partition.
        ends: partitions read up to their last stable offset, and that offset; markers of transactions count in it.
        gone: partitions whose log does not hold the offset that was to be read.
    """

    facts: dict[int, FetchedFacts] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)


class FactsConsumer:
    """Reads facts, in one thread."""

    def __init__(self, settings: Settings, bootstrap: str) -> None:
        self._topic = settings.facts_topic
        properties: dict[str, Any] = {
            "group.id": settings.archive_group_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 65536,
            "on_commit": _note_commit,
        }
        self._client = Consumer(settings.client_config(bootstrap, **properties))

    def read_from(self, offsets: Mapping[int, int]) -> None:
        """Read partitions from these offsets, dropping whatever was fetched of them before."""
        places = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        # Not `seek`, which fails while a partition's fetcher starts.
        self.stop_reading(offsets)
        self._client.incremental_assign(places)

    def stop_reading(self, partitions: Iterable[int]) -> None:
        """Fetch nothing more of these partitions; of those that are not read this says nothing."""
        read = {place.partition for place in self._client.assignment()}
        places = [TopicPartition(self._topic, partition) for partition in partitions if partition in read]
        if places:
            self._client.incremental_unassign(places)

    def fetch(self) -> Fetched:
        """Some records, waiting a moment for the first.

        Raises:
            KafkaException: the consumer is of no more use.
        """
        fetched = Fetched()
        messages: defaultdict[int, list[Message]] = defaultdict(list)
        for message in self._client.consume(_CONSUME_RECORDS, _CONSUME_SECONDS):
            error, partition = message.error(), message.partition()
            if error is not None:
                _note_event(error, partition, message.offset(), fetched)
            else:
                messages[cast("int", partition)].append(message)
        for partition, own in messages.items():
            fetched.facts[partition] = FetchedFacts(
                cast("list[int]", [message.offset() for message in own]),
                cast("list[bytes | None]", [message.value() for message in own]),
                [source_header(cast("_Headers", message.headers())) for message in own],
            )
        return fetched

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Show the group's offsets; the answer is not waited for."""
        places = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
        self._client.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        """End."""
        self._client.close()


def _note_event(error: KafkaError, partition: int | None, offset: int | None, fetched: Fetched) -> None:
    if error.code() == KafkaError._PARTITION_EOF and partition is not None and offset is not None:
        fetched.ends[partition] = offset
    elif error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
        fetched.gone.append(partition)
    elif error.fatal():
        raise KafkaException(error)
    else:
        _log.warning("facts_consumer_event", partition=partition, error=error.str())


def _note_commit(error: KafkaError | None, _: Sequence[TopicPartition]) -> None:
    if error is not None:
        _log.warning("archive_offsets_not_committed", error=error.str())
