"""Errors of Kafka's calls are treated by their flags; a failed delivery is never lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from service.errors import BatchAborted, Fenced, ProducerFailed, Undeliverable
from service.lanes.producing import Deliveries, call_by_flag, produce
from service.records import OutputRecord

RECORD = OutputRecord("facts", 3, b"k", b"v", (("h", b"1"),), 5)


class FakeProducer:
    """Fails `produce` as told, then takes the record."""

    def __init__(self, *failures: Exception, cause: Exception | None = None) -> None:
        self._failures = list(failures)
        self._cause = cause or error(KafkaError._NOT_CONFIGURED)
        self.produced: list[object] = []
        self.polls = 0

    def poll(self, timeout: float) -> int:
        self.polls += 1
        return 0

    def abort_transaction(self, timeout: float) -> None:
        raise self._cause

    def produce(self, topic: str, **record: object) -> None:
        if self._failures:
            raise self._failures.pop(0)
        self.produced.append((topic, record["partition"], record["headers"]))


def error(code: int, **flags: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "why", **flags))


def failing(*errors: Exception) -> Callable[[], str]:
    """A call that raises each of the errors and then succeeds."""
    pending: Iterator[Exception] = iter(errors)

    def call() -> str:
        for one in pending:
            raise one
        return "done"

    return call


def never() -> bool:
    return False


def test_a_retriable_error_means_the_same_call_again() -> None:
    producer = FakeProducer()
    call = failing(error(KafkaError._TIMED_OUT, retriable=True), error(KafkaError.NOT_COORDINATOR, retriable=True))
    assert call_by_flag(call, producer, never) == "done"  # type: ignore[arg-type]
    assert producer.polls == 2


def test_a_process_that_stops_does_not_wait_for_ever() -> None:
    call = failing(error(KafkaError._TIMED_OUT, retriable=True))
    with pytest.raises(ProducerFailed, match="stopped while Kafka did not answer"):
        call_by_flag(call, FakeProducer(), lambda: True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (error(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True), BatchAborted),
        (error(KafkaError.PRODUCER_FENCED, fatal=True), Fenced),
        (error(KafkaError._FENCED, fatal=True), Fenced),
        (error(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True), ProducerFailed),
        (error(KafkaError._STATE), KafkaException),
    ],
)
def test_other_errors_are_what_their_flags_say(raised: KafkaException, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught:
        call_by_flag(failing(raised), FakeProducer(), never)  # type: ignore[arg-type]
    assert type(caught.value) is expected


def test_a_full_queue_is_waited_for() -> None:
    producer = FakeProducer(BufferError(), BufferError())
    produce(producer, RECORD, Deliveries())  # type: ignore[arg-type]
    assert producer.produced == [("facts", 3, [("h", b"1")])]
    assert producer.polls == 2


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (error(KafkaError.MSG_SIZE_TOO_LARGE), Undeliverable),
        (error(KafkaError._STATE), BatchAborted),
        (error(KafkaError._FATAL), ProducerFailed),
        (error(KafkaError._FENCED), Fenced),
    ],
)
def test_a_record_that_cannot_be_queued_fails_its_batch(raised: KafkaException, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught:
        produce(FakeProducer(raised), RECORD, Deliveries())  # type: ignore[arg-type]
    assert type(caught.value) is expected


def test_a_producer_that_was_fenced_says_so_whichever_call_finds_it_out() -> None:
    producer = FakeProducer(error(KafkaError._FATAL), cause=error(KafkaError._FENCED, fatal=True))
    with pytest.raises(Fenced):
        produce(producer, RECORD, Deliveries())  # type: ignore[arg-type]


def test_the_first_failed_delivery_is_kept_and_what_an_abort_purges_is_not_its_cause() -> None:
    deliveries = Deliveries()
    deliveries.report(RECORD, None, Message(partition=0))
    assert deliveries.failure() is None
    deliveries.report(RECORD, KafkaError(KafkaError._PURGE_QUEUE), Message(partition=1))
    assert deliveries.failure() is None
    for partition, value, code in (
        (2, b"123", KafkaError.MSG_SIZE_TOO_LARGE),
        (3, b"123456789", KafkaError._MSG_TIMED_OUT),
        (4, b"12345", KafkaError.MSG_SIZE_TOO_LARGE),
        (5, b"1234", KafkaError.MSG_SIZE_TOO_LARGE),
    ):
        refused = RECORD._replace(partition=partition, value=value, headers=(("litehit-source", b"requests/4/41"),))
        deliveries.report(refused, KafkaError(code), Message(partition=partition))
    failure = deliveries.failure()
    assert isinstance(failure, Undeliverable)
    assert failure.partition == 4, "of those that were refused together, the largest"
    assert "requests/4/41" in str(failure)
    assert "max.message.bytes" in str(failure)
    deliveries.clear()
    assert deliveries.failure() is None


def test_a_delivery_that_timed_out_may_succeed_next_time() -> None:
    deliveries = Deliveries()
    deliveries.report(RECORD, KafkaError(KafkaError._MSG_TIMED_OUT), Message(partition=3))
    assert type(deliveries.failure()) is BatchAborted
