"""A producer of the requests topic that keeps an instance's order and holds back where it must."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from litehit.counted import counted
from service.errors import PublishError, PublishInterrupted
from service.lag_window import LagWindow
from service.outgoing import OutgoingRecord
from service.record_limits import MAX_RECORD_BYTES, REFUSED, how_to_raise
from service.settings import Settings

_EMBEDDED_WINDOW_BYTES = 2 * 2**20

_WAITING_KILOBYTES = 64 * 2**10
"""Of records that the broker has not taken yet; a file is read much faster than a slow one takes them."""

_TIMEOUT_SECONDS = 10.0
_FLUSH_SECONDS = 60.0
_NOT_TAKEN = REFUSED | {KafkaError._PURGE_QUEUE}
_AGAIN = "see that the broker runs, then publish again: into a new store, or those records count twice"


def embedded_window_bytes(most_facts: int) -> int:
    """Bytes of requests that may stand unprocessed on the embedded broker.

    It keeps 5 MiB a partition and drops older records, read or not: the requests', and then those of their facts.

    Args:
        most_facts: facts that one request becomes at most.
    """
    return _EMBEDDED_WINDOW_BYTES // most_facts


class Publisher:
    """Sends records; the key, an instance id, keeps an instance on one partition.

    The partitioner is murmur2, that of Kafka's own clients, so other taps put an instance on the same partition.

    Args:
        settings: topic, group and client properties.
        bootstrap: the broker's address.
        window_bytes: hold back while so many bytes are not yet consumed by the lanes; None: never.
        hopeless: asked while it holds back, with the seconds since the lanes consumed anything: why it would be in
            vain, or None. None: nobody is asked.

    Raises:
        PublishError: the broker does not answer, or has no requests topic.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        window_bytes: int | None = None,
        hopeless: Callable[[float], str | None] | None = None,
    ) -> None:
        self._hopeless = hopeless
        self._topic = settings.requests_topic
        self._failure: str | None = None
        self._failed = 0
        self._may_have_arrived = False  # of those, some: an answer that is lost says nothing
        self._sent = 0
        self._arrived = 0  # counted where there is a window
        self._producer = Producer(
            settings.client_config(
                bootstrap,
                **{
                    "enable.idempotence": True,
                    "partitioner": "murmur2_random",
                    "linger.ms": 20,
                    "message.max.bytes": MAX_RECORD_BYTES,
                    "queue.buffering.max.kbytes": _WAITING_KILOBYTES,
                    "log_level": 2,
                    "on_delivery": self._delivered,
                    # A report of each record costs as much as the sending; only the window has to know their offsets.
                    "delivery.report.only.error": window_bytes is None,
                },
            )
        )
        # Ask first: a producer alone would keep a wrong address to itself and wait.
        try:
            found = self._producer.list_topics(self._topic, timeout=_TIMEOUT_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise PublishError(
                f"{bootstrap}: {error.args[0].str()}; see that Kafka runs there and may be reached"
            ) from error
        if found.error is not None:
            raise PublishError(
                f"{bootstrap} has no topic {self._topic} to publish to: {found.error.str()}; create it, or name "
                f"another (LITEHIT_REQUESTS_TOPIC)"
            )
        self._window: LagWindow | None = None
        if window_bytes is not None:
            self._group = Consumer(settings.client_config(bootstrap, **{"group.id": settings.group_id, "log_level": 2}))
            self._window = LagWindow(window_bytes, self._committed, self._poll, self._stalled)

    def send(self, records: Iterable[OutgoingRecord]) -> None:
        """Send records, in their order; waits while the window is full."""
        topic, produce, window = self._topic, self._producer.produce, self._window
        for key, value, headers in records:
            if window is not None:
                window.make_room()
                window.sent(len(value))
            while True:
                try:
                    produce(topic, value, key, headers=headers)
                    break
                except BufferError:  # librdkafka's queue is full
                    self._poll(0.1)
                except KafkaException as error:
                    raise self._ended(self._refused(error.args[0], len(value))) from error
            self._sent += 1
        self._poll(0)

    def wait(self, seconds: float) -> None:
        """Let time pass while deliveries go on."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._poll(left)

    def finish(self) -> int:
        """Wait until the topic has taken every record; how many that are.

        Raises:
            PublishError: it has not taken all of them.
        """
        left = self._producer.flush(_FLUSH_SECONDS)
        self._poll(0)
        if left:
            raise PublishError(
                f"{self._topic} took {counted(self._sent - left, 'record')}, and not the other {left} within "
                f"{_FLUSH_SECONDS:.0f} s; {_AGAIN}"
            )
        return self._sent

    def interrupted(self) -> PublishError:
        """What to say where whoever sends was told to stop."""
        return PublishInterrupted(str(self._ended("interrupted")))

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._failure is not None:
            raise self._ended(self._failure)

    def _stalled(self, seconds: float) -> None:
        if self._hopeless is not None and (why := self._hopeless(seconds)) is not None:
            raise self._ended(why)

    def _ended(self, why: str) -> PublishError:
        """What ends the publishing, with what the topic has by then: records on their way are waited for."""
        self._producer.purge(in_flight=False)  # those that would come behind the one that is missing
        left = self._producer.flush(_FLUSH_SECONDS)
        if not self._sent:
            return PublishError(why)
        taken = self._sent - self._failed - left
        is_sure = not left and not self._may_have_arrived
        again = "" if is_sure and not taken else "; publish again into a new store, or they count twice"
        has = f"the topic has {'' if is_sure else 'at least '}{taken}"
        return PublishError(f"{why}; of {counted(self._sent, 'record')} sent {has}{again}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._may_have_arrived |= error.code() not in _NOT_TAKEN
            self._failure = self._failure or self._refused(error, len(message))
            return
        partition, offset = message.partition(), message.offset()
        if self._window is not None and partition is not None and offset is not None:
            self._arrived += 1
            self._window.delivered(partition, offset, len(message))

    def _refused(self, error: KafkaError, size: int) -> str:
        what = f"{self._topic} refused a record of {size:,} bytes: {error.str()}"
        if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return what
        return f"{what}; {how_to_raise(self._topic, size)}, or publish with --binary, which takes less than half"

    def _committed(self, partitions: Iterable[int]) -> Mapping[int, int]:
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            committed = self._group.committed(asked, timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise PublishError(
                f"the broker took {counted(self._arrived, 'record')} and then did not answer "
                f"({error.args[0].str()}); {_AGAIN}"
            ) from error
        return {found.partition: found.offset for found in committed}
