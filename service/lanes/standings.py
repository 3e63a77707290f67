"""Where partitions of the requests topic stand, asked of the broker beside the consumer that reads."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from service.lanes.committed import Committed, RequestsTopic
from service.lanes.restore import Standing
from service.settings import Settings

_ASK_SECONDS = 3.0


class Standings:
    """Asks, from any thread.

    It is a client of its own, so that a partition whose broker is away keeps nobody from reading the others.

    Args:
        settings: group and client properties.
        bootstrap: Kafka's bootstrap servers.
        topic: the requests topic.
    """

    def __init__(self, settings: Settings, bootstrap: str, topic: RequestsTopic) -> None:
        self._topic = topic
        properties = {
            "group.id": settings.group_id,
            "enable.auto.commit": False,
            # Also what makes the broker wait with committed offsets until an orphaned transaction is decided.
            "isolation.level": "read_committed",
        }
        self._client = Consumer(settings.client_config(bootstrap, **properties))
        self._asking = threading.Lock()
        self._open = True

    def ask(self, partition: int) -> Standing:
        """What a restore of a partition is planned from, now.

        Raises:
            KafkaException: the broker does not answer in time, or this is closed.
        """
        with self._asking:
            if not self._open:
                raise KafkaException(KafkaError(KafkaError._DESTROY, "the lanes have ended"))
            place = TopicPartition(self._topic.name, partition)
            marks = self._client.get_watermark_offsets(place, timeout=_ASK_SECONDS)
            if marks is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            low, end = marks
            (committed,) = self._committed([partition])
            others = self._committed(range(self._topic.partitions)) if committed.offset is None else []
        return Standing(committed, low, end, tuple(others))

    def close(self) -> None:
        """End; who asks meanwhile gets an answer first."""
        with self._asking:
            self._open = False
            self._client.close()

    def _committed(self, partitions: Iterable[int]) -> list[Committed]:
        places = [TopicPartition(self._topic.name, partition) for partition in partitions]
        answers = self._client.committed(places, timeout=_ASK_SECONDS)
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
        return [Committed.read(answer.offset, answer.metadata) for answer in answers]
