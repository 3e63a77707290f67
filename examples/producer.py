"""A tap: request events to the requests topic, without ever holding up who calls it."""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_FLUSH_SECONDS = 10.0
_POLL_SECONDS = 0.1

log = logging.getLogger(__name__)


class RequestTap:
    """Sends request events; what can't be sent is counted and logged, never raised.

    The key is the instance id and the partitioner that of Kafka's own clients, so that whatever programs send an
    instance's requests, they land on one partition, in one order.

    Args:
        bootstrap: Kafka's address, HOST:PORT[,HOST:PORT…].
        topic: the requests topic.
        queued: events that may wait for Kafka; more are dropped.

    Attributes:
        delivered: events that the topic has taken.
        dropped: events that it has not and will not.
    """

    def __init__(self, bootstrap: str, topic: str = "litehit.requests", queued: int = 100_000) -> None:
        self.delivered = 0
        self.dropped = 0
        self._topic = topic
        self._counting = threading.Lock()
        self._closed = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,  # a retry neither doubles nor reorders
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "queue.buffering.max.messages": queued,
                "message.max.bytes": 16 * 2**20,  # the topic's max.message.bytes decides
            }
        )
        # Delivery reports come inside poll, so a thread of its own polls, not the callers.
        self._polling = threading.Thread(target=self._poll, name="litehit-tap", daemon=True)
        self._polling.start()
        atexit.register(self.close)

    def send(
        self,
        instance_id: str,
        block_keys: Sequence[int],
        input_token_len: int,
        timestamp_ns: int,
        trace_id: str = "",
    ) -> None:
        """Queue the event of one request and return at once.

        Args:
            instance_id: the model deployment, as registered.
            block_keys: the prefix key of each full block.
            input_token_len: tokens of the whole prompt.
            timestamp_ns: when the request came in, in nanoseconds since 1970.
            trace_id: a name for the request.
        """
        event = {
            "type": "request",
            "instance_id": instance_id,
            "trace_id": trace_id,
            "timestamp_ns": timestamp_ns,
            "block_keys": list(block_keys),
            "input_token_len": input_token_len,
        }
        if self._closed.is_set():
            self.drop("the tap is closed")
            return
        try:
            value = json.dumps(event, separators=(",", ":"))
            self._producer.produce(self._topic, value, instance_id, on_delivery=self._reported)
        except BufferError:
            self.drop("too many events wait for Kafka")
        except (KafkaException, TypeError, ValueError) as error:
            self.drop(str(error))

    def drop(self, why: str) -> None:
        """Count an event that is not sent, and log the reason now and then."""
        with self._counting:
            self.dropped += 1
            dropped = self.dropped
        if dropped & (dropped - 1) == 0:  # 1, 2, 4, 8, …: an outage fills no log
            log.warning("LiteHit's tap dropped %d events by now; the last: %s", dropped, why)

    def close(self) -> None:
        """Wait a moment until the topic has taken what waits; done at exit too."""
        atexit.unregister(self.close)
        if self._closed.is_set():
            return
        self._closed.set()
        self._polling.join()
        self._producer.flush(_FLUSH_SECONDS)
        self._producer.purge()  # what is left is reported as dropped
        self._producer.flush(_FLUSH_SECONDS)

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._producer.poll(_POLL_SECONDS)

    def _reported(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.drop(error.str())
            return
        with self._counting:
            self.delivered += 1
