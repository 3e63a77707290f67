"""Which topic it is that has a name: deleted and created again, it is another."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from service.settings import Settings
from service.topics import FoundTopic, find_topic

_ASK_SECONDS = 5.0


class TopicWatch:
    """Asks Kafka. Offsets of one generation mean nothing in another.

    A generation that was replaced never comes back: what was fetched before the answer is of the generation answered,
    if that is the one it was before.
    """

    def __init__(self, settings: Settings, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._client = AdminClient(settings.client_config(bootstrap))

    def look(self) -> FoundTopic | None:
        """The topic as it is now; None where there is none.

        Raises:
            KafkaException: the broker does not answer in time.
        """
        return find_topic(self._client, self._topic, _ASK_SECONDS)
