"""Where the partitions of the facts topic begin and end, asked of the broker."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from service.settings import Settings

_ASK_SECONDS = 5.0


class FactsOffsets:
    """Asks, from any thread.

    It is a client of its own: on the connection that fetches, a question waits until the broker has answered the fetch
    before it, half a second at the end of the topic; and librdkafka was seen to wait without end for the answer to one
    thread while another consumes by the same client.
    """

    def __init__(self, settings: Settings, bootstrap: str) -> None:
        self._topic = settings.facts_topic
        self._client = Consumer(
            settings.client_config(
                bootstrap,
                **{
                    "group.id": settings.archive_group_id,
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                },
            )
        )
        self._asking = threading.Lock()
        self._open = True

    def begins(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset of each partition's log.

        Raises:
            KafkaException: the broker does not answer in time, or the client is closed.
        """
        return self._ask(partitions, OFFSET_BEGINNING)

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The last stable offset of each partition, as the broker has it now. Errors are those of `begins`."""
        return self._ask(partitions, OFFSET_END)

    def close(self) -> None:
        """End; who asks meanwhile gets an answer first."""
        with self._asking:
            self._open = False
            self._client.close()

    def _ask(self, partitions: Iterable[int], which: int) -> dict[int, int]:
        # The two special offsets are special times as well in Kafka's protocol, so that one question is enough for all
        # partitions; the answer to the second respects the isolation level.
        places = [TopicPartition(self._topic, partition, which) for partition in partitions]
        with self._asking:
            if not self._open:
                raise KafkaException(KafkaError(KafkaError._DESTROY, "the archiver has ended"))
            answers = self._client.offsets_for_times(places, timeout=_ASK_SECONDS) if places else []
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
        return {answer.partition: answer.offset for answer in answers}
