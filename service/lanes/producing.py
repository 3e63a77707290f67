"""What both transactions share: producing records, their delivery reports, and errors by their flags."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.dead_letter import SOURCE_HEADER
from service.errors import BatchAborted, Fenced, ProducerFailed, TransactionUnknown, Undeliverable
from service.record_limits import MAX_RECORD_BYTES, REFUSED, how_to_raise
from service.records import OutputRecord
from service.settings import Settings

log = structlog.get_logger()
T = TypeVar("T")

CALL_SECONDS = 10.0
"""How long one blocking call waits before it reports a retriable error."""

_BATCH_BYTES = 1_000_000  # librdkafka's own choice

_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


def producer_config(settings: Settings, bootstrap: str, **properties: Any) -> dict[str, Any]:
    """librdkafka properties of a lane worker's producer."""
    own: dict[str, Any] = {
        "acks": "all",
        "message.max.bytes": MAX_RECORD_BYTES,  # a long curve's fact is as large as its topic takes
        # A topic's limit is one of whole batches, and where one record fits, several must not be sent as more.
        "batch.size": min(_BATCH_BYTES, settings.dead_letter_max_bytes),
        "delivery.report.only.error": True,  # success is told by the commit, or by the flush, for all at once
    }
    return settings.client_config(bootstrap, **own | properties)


def call_by_flag(call: Callable[[], T], producer: Producer, stopping: Callable[[], bool]) -> T:
    """Make a call and treat its error by the flags that librdkafka sets.

    A retriable error means the same call again, for as long as it takes: giving up would leave the transaction
    undecided. Only a process that is being stopped leaves it so; its successor's `open` decides it.

    Raises:
        BatchAborted: `txn_requires_abort`.
        ProducerFailed: a fatal error, or stopped while Kafka can't be reached.
        KafkaException: an error without a flag: none that waiting or aborting would mend.
    """
    while True:
        try:
            return call()
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            raise_if_fatal(error)
            if error.txn_requires_abort():
                raise BatchAborted(error.str()) from exception
            if not error.retriable():
                raise
            if stopping():
                raise ProducerFailed(f"stopped while Kafka did not answer: {error.str()}") from exception
            log.warning("kafka_call_repeated", error=error.str())
            producer.poll(0.1)


def _raise_cause(producer: Producer) -> None:
    """Raise what made a producer fail for good, where it tells.

    `produce` says only that it did; a call about the transaction, which can do nothing any more, says why.
    """
    try:
        producer.abort_transaction(CALL_SECONDS)  # it waits for the thread that has found out and is yet to say so
    except KafkaException as exception:
        raise_if_fatal(exception.args[0])


def raise_if_fatal(error: KafkaError) -> None:
    """Raise what a fatal error means for the process."""
    if error.code() in _FENCED:
        raise Fenced(
            f"{error.str()}: either a newer process uses this process's transactional_id, so give each lanes process "
            f"its own (LITEHIT_TRANSACTIONAL_ID); or Kafka aborted a transaction that took longer than "
            f"transaction_timeout_seconds (LITEHIT_TRANSACTION_TIMEOUT_SECONDS), so start the process again"
        )
    if error.fatal() or error.code() == KafkaError._FATAL:
        raise (TransactionUnknown if error.code() == KafkaError.INVALID_TXN_STATE else ProducerFailed)(error.str())


class Deliveries:
    """Delivery reports of one batch: the first failure is kept until it is asked for, of refused records the largest.

    Records are refused together with those that were sent beside them, which are not to blame.

    Args:
        delivered: is told of each record that was delivered.
    """

    def __init__(self, delivered: Callable[[Message], None] = lambda _: None) -> None:
        self._delivered = delivered
        self._failure: tuple[OutputRecord, KafkaError] | None = None

    def clear(self) -> None:
        """Forget the batch before."""
        self._failure = None

    def report(self, record: OutputRecord, error: KafkaError | None, message: Message) -> None:
        """The producer's `on_delivery` of a record."""
        if error is None:
            self._delivered(message)
        # What an abort purges failed for another reason than its own.
        elif error.code() not in _PURGED and self._is_worse(record, error):
            self._failure = record, error

    def failure(self) -> BatchAborted | None:
        """What the first failed delivery means; None where all went well so far."""
        if self._failure is None:
            return None
        return delivery_error(*self._failure)

    def _is_worse(self, record: OutputRecord, error: KafkaError) -> bool:
        if self._failure is None:
            return True
        kept, why = self._failure
        return error.code() == why.code() and error.code() in REFUSED and _size(record) > _size(kept)


def _size(record: OutputRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")


def delivery_error(record: OutputRecord, error: KafkaError) -> BatchAborted:
    """`Undeliverable` where sending the record again can't help."""
    topic, partition, size = record.topic, record.partition, _size(record)
    source = (dict(record.headers).get(SOURCE_HEADER) or b"").decode()
    message = f"what {source} gives, {size:,} bytes, was not delivered to {topic}/{partition}: {error.str()}"
    if error.code() not in REFUSED:
        return BatchAborted(message)
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        message += f"; {how_to_raise(topic, size)}"
    return Undeliverable(topic, partition, message)


def produce(producer: Producer, record: OutputRecord, deliveries: Deliveries | None) -> None:
    """Queue a record.

    Args:
        producer: of a lane worker.
        record: what is to be produced.
        deliveries: is told of the record's delivery; None: nobody is.

    Raises:
        BatchAborted: it can't be queued.
        ProducerFailed: nothing can be queued any more.
    """
    while True:
        try:
            producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=None if deliveries is None else partial(deliveries.report, record),
            )
        except BufferError:
            producer.poll(0.1)  # room comes with the next delivery reports
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            if error.code() == KafkaError._FATAL:
                _raise_cause(producer)
            raise_if_fatal(error)
            raise delivery_error(record, error) from exception
        else:
            return
