"""For brokers without transactions: output first, offsets after every delivery report."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from confluent_kafka import Consumer, KafkaException, Message, Producer

from service.errors import BatchAborted
from service.lag_window import LagWindow
from service.lanes.producing import (
    CALL_SECONDS,
    Deliveries,
    call_by_flag,
    produce,
    producer_config,
    raise_if_fatal,
)
from service.lanes.transaction import MicroBatch, Transaction
from service.settings import Settings

log = structlog.get_logger()

_DELIVERY_SECONDS = 60


class AtLeastOnce(Transaction):
    """Nothing is lost; a crash between output and offsets, or an abort, doubles those facts of the batch that arrived.

    Args:
        settings: limits of the producer.
        bootstrap: Kafka's bootstrap servers.
        consumer: commits the offsets.
        stopping: True once the process is asked to stop.
        facts_window: is told of every fact that the topic took; None where nobody counts them.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        consumer: Consumer,
        stopping: Callable[[], bool],
        facts_window: LagWindow | None = None,
    ) -> None:
        self._consumer = consumer
        self._stopping = stopping
        self._facts_topic = settings.facts_topic
        self._facts_window = facts_window
        self._deliveries = Deliveries(self._delivered)
        properties = {
            "enable.idempotence": True,
            "delivery.timeout.ms": _DELIVERY_SECONDS * 1000,
            "delivery.report.only.error": facts_window is None,
        }
        self._producer = Producer(producer_config(settings, bootstrap, **properties))

    def open(self) -> None:
        """Nothing is left over from another process."""

    def prepare(self) -> None:
        """Nothing is needed."""

    def hand_over(self, batch: MicroBatch) -> None:
        """Produce, and wait for every delivery report."""
        self._deliveries.clear()
        for record in batch.outputs:
            produce(self._producer, record, self._deliveries)
        # Ends by itself: each record is reported, delivered or not, within delivery.timeout.ms.
        while waiting := self._producer.flush(CALL_SECONDS):
            log.warning("deliveries_outstanding", records=waiting)
        failure = self._deliveries.failure()
        if failure is not None:
            raise failure

    def finish(self, batch: MicroBatch) -> None:
        """Commit the offsets."""
        try:
            committed = call_by_flag(
                lambda: self._consumer.commit(offsets=batch.offsets(), asynchronous=False),
                self._producer,
                self._stopping,
            )
        except KafkaException as exception:
            raise_if_fatal(exception.args[0])
            raise BatchAborted(f"the consumed offsets were not committed: {exception.args[0].str()}") from exception
        for partition in committed or ():
            if partition.error is not None:
                raise BatchAborted(f"the consumed offset {partition} was not committed: {partition.error.str()}")

    def close(self) -> None:
        """Purge the producer; the offsets of what it held are not committed."""
        self._producer.purge()
        self._producer.close()

    def _delivered(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if self._facts_window is None or message.topic() != self._facts_topic or partition is None or offset is None:
            return
        size = len(message.value() or b"")
        self._facts_window.sent(size)
        self._facts_window.delivered(partition, offset, size)
