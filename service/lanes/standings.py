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

    It is a client of its own, so that a partition whose broker is away keeps nobody from reading the others; one that
    got no answer is replaced, for it may go on for minutes with what it once knew of the partitions' leaders.

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
        self._config = settings.client_config(bootstrap, **properties)
        self._client: Consumer | None = None
        self._asking = threading.Lock()
        self._ended = False

    def ask(self, partition: int) -> Standing:
        """What a restore of a partition is planned from, now.

        Raises:
            KafkaException: the broker does not answer in time, or this is closed.
        """
        with self._asking:
            if self._ended:
                raise KafkaException(KafkaError(KafkaError._DESTROY, "the lanes have ended"))
            self._client = client = self._client or Consumer(self._config)
            try:
                return self._standing(client, partition)
            except KafkaException:
                self._drop()
                raise

    def close(self) -> None:
        """End; who asks meanwhile gets an answer first."""
        with self._asking:
            self._ended = True
            self._drop()

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _standing(self, client: Consumer, partition: int) -> Standing:
        def committed(partitions: Iterable[int]) -> list[Committed]:
            places = [TopicPartition(self._topic.name, number) for number in partitions]
            answers = client.committed(places, timeout=_ASK_SECONDS)
            for answer in answers:
                if answer.error is not None:
                    raise KafkaException(answer.error)
            return [Committed.read(answer.offset, answer.metadata) for answer in answers]

        marks = client.get_watermark_offsets(TopicPartition(self._topic.name, partition), timeout=_ASK_SECONDS)
        if marks is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        low, end = marks
        (own,) = committed([partition])
        others = committed(range(self._topic.partitions)) if own.offset is None else []
        return Standing(own, low, end, tuple(others))
