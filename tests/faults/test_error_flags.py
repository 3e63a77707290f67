"""From a broker's answer to what becomes of the batch: errors injected into a mock cluster, flags by librdkafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from service.errors import BatchAborted, Fenced, ProducerFailed, TransactionUnknown, Undeliverable
from service.lanes import producing
from service.lanes.at_least_once import AtLeastOnce
from service.lanes.committed import Position
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.membership import Membership
from service.lanes.transaction import MicroBatch, Transaction
from service.records import OutputRecord
from service.settings import Settings
from tests import lanes_harness as harness
from tests.faults.mock_cluster import Api, MockCluster

RETRIED = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE)


class Member:
    """A consumer that its group knows."""

    def __init__(self, client: Consumer) -> None:
        self._client = client

    def memberid(self) -> str:
        return "member"

    def consumer_group_metadata(self) -> Any:
        return self._client.consumer_group_metadata()


@pytest.fixture
def mock() -> Iterator[MockCluster]:
    with MockCluster() as cluster:
        for topic in ("requests", "facts"):
            cluster.create_topic(topic, 2)
        yield cluster


@pytest.fixture
def settings(mock: MockCluster) -> Settings:
    return Settings(bootstrap=mock.bootstrap, requests_topic="requests", facts_topic="facts", transactional_id="slot")


@pytest.fixture
def consumer(mock: MockCluster) -> Iterator[Consumer]:
    client = Consumer({"bootstrap.servers": mock.bootstrap, "group.id": "lanes", "log_level": 0})
    yield client
    client.close()


def make_exactly_once(settings: Settings, consumer: Consumer, stopping: Callable[[], bool]) -> ExactlyOnce:
    assert settings.bootstrap is not None
    membership = Membership(Member(consumer))  # type: ignore[arg-type]
    membership.joined()
    return ExactlyOnce(settings, settings.bootstrap, membership, stopping)


@pytest.fixture
def exactly_once(settings: Settings, consumer: Consumer) -> Iterator[ExactlyOnce]:
    transaction = make_exactly_once(settings, consumer, lambda: False)
    yield transaction
    transaction.close()


@pytest.fixture
def at_least_once(mock: MockCluster, settings: Settings, consumer: Consumer) -> Iterator[AtLeastOnce]:
    transaction = AtLeastOnce(settings, mock.bootstrap, consumer, lambda: False)
    yield transaction
    transaction.close()


def batch(number: int) -> MicroBatch:
    fact = OutputRecord("facts", 0, b"key", b"fact %d" % number, (), 0)
    return MicroBatch([fact], "requests", {0: Position(number + 1, "generation:1:0")})


def facts(mock: MockCluster) -> list[bytes | None]:
    return [record.value for record in harness.read_topic(mock.bootstrap, "facts", 1)]


@pytest.mark.parametrize(
    ("api", "codes"),
    [
        (Api.ADD_PARTITIONS_TO_TXN, (*RETRIED, KafkaError.CONCURRENT_TRANSACTIONS)),
        (Api.PRODUCE, (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT)),
        (Api.ADD_OFFSETS_TO_TXN, (*RETRIED, KafkaError.CONCURRENT_TRANSACTIONS)),
        (Api.TXN_OFFSET_COMMIT, RETRIED),
        (Api.END_TXN, (*RETRIED, KafkaError.CONCURRENT_TRANSACTIONS)),
    ],
)
def test_what_passes_is_tried_again_and_the_batch_is_handed_over_once(
    mock: MockCluster, exactly_once: ExactlyOnce, api: Api, codes: tuple[int, ...]
) -> None:
    exactly_once.open()
    mock.fail(api, *codes)
    exactly_once.commit(batch(0))
    exactly_once.commit(batch(1))
    assert facts(mock) == [b"fact 0", b"fact 1"]


def test_a_call_that_times_out_is_made_again_until_it_is_answered(
    mock: MockCluster, settings: Settings, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out is the retriable error that comes through to the caller."""
    monkeypatch.setattr("service.lanes.exactly_once.CALL_SECONDS", 0.3)
    repeated = 0

    def asked_to_stop() -> bool:
        nonlocal repeated
        repeated += 1
        mock.answer_after(0)
        return False

    transaction = make_exactly_once(settings, consumer, asked_to_stop)
    transaction.open()
    mock.answer_after(1000)
    transaction.commit(batch(0))
    assert repeated >= 1
    transaction.commit(batch(1))
    transaction.close()
    assert facts(mock) == [b"fact 0", b"fact 1"]


def test_a_call_that_never_returns_is_left_behind_with_its_producer(
    mock: MockCluster, exactly_once: ExactlyOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.lanes.exactly_once._PATIENCE_SECONDS", 0.2)
    exactly_once.open()
    mock.answer_after(1000)
    with pytest.raises(BatchAborted, match="a new producer goes on"):
        exactly_once.commit(batch(0))
    mock.answer_after(0)
    exactly_once.commit(batch(1))
    assert facts(mock)[-1] == b"fact 1"


@pytest.mark.filterwarnings("ignore:Producer abort_transaction failed:RuntimeWarning")
def test_an_abort_of_what_kafka_has_not_begun_leads_to_a_new_producer(
    mock: MockCluster, exactly_once: ExactlyOnce
) -> None:
    exactly_once.open()
    mock.fail(Api.TXN_OFFSET_COMMIT, KafkaError.ILLEGAL_GENERATION)
    mock.fail(Api.END_TXN, KafkaError.INVALID_TXN_STATE)
    with pytest.raises(BatchAborted, match="a new producer goes on"):
        exactly_once.commit(batch(0))
    exactly_once.commit(batch(1))
    assert facts(mock)[-1] == b"fact 1"


@pytest.mark.parametrize(
    ("api", "code", "expected"),
    [
        (Api.TXN_OFFSET_COMMIT, KafkaError.ILLEGAL_GENERATION, BatchAborted),
        (Api.TXN_OFFSET_COMMIT, KafkaError.UNKNOWN_MEMBER_ID, BatchAborted),
        (Api.TXN_OFFSET_COMMIT, KafkaError.FENCED_INSTANCE_ID, BatchAborted),
        (Api.ADD_PARTITIONS_TO_TXN, KafkaError.TOPIC_AUTHORIZATION_FAILED, BatchAborted),
        (Api.ADD_OFFSETS_TO_TXN, KafkaError.GROUP_AUTHORIZATION_FAILED, BatchAborted),
        (Api.PRODUCE, KafkaError.INVALID_REQUIRED_ACKS, BatchAborted),
        (Api.PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE, BatchAborted),
    ],
)
def test_an_abortable_error_aborts_its_batch_and_a_later_one_goes_through(
    mock: MockCluster, exactly_once: ExactlyOnce, api: Api, code: int, expected: type[BatchAborted]
) -> None:
    exactly_once.open()
    mock.fail(api, code)
    with pytest.raises(BatchAborted) as caught:
        exactly_once.commit(batch(0))
    assert type(caught.value) is expected
    hand_over_at_last(exactly_once, batch(1))
    assert facts(mock)[-1] == b"fact 1"


@pytest.mark.parametrize("code", [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD])
def test_a_record_that_is_refused_when_it_comes_again_is_told(
    mock: MockCluster, exactly_once: ExactlyOnce, code: int
) -> None:
    exactly_once.open()
    for _ in range(3):  # librdkafka takes one more to count anew after a refused record
        mock.fail(Api.PRODUCE, code)
        with pytest.raises(BatchAborted) as caught:
            exactly_once.commit(batch(0))
        if isinstance(caught.value, Undeliverable):
            break
    assert isinstance(caught.value, Undeliverable)
    assert (caught.value.topic, caught.value.partition) == ("facts", 0)
    hand_over_at_last(exactly_once, batch(1))
    assert facts(mock)[-1] == b"fact 1"


def test_deliveries_are_reported_until_the_partition_is_past_what_was_aborted(
    mock: MockCluster, exactly_once: ExactlyOnce, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[bool] = []
    original = producing.produce

    def produce(producer: Producer, record: OutputRecord, deliveries: producing.Deliveries | None) -> None:
        reported.append(deliveries is not None)
        original(producer, record, deliveries)

    monkeypatch.setattr("service.lanes.exactly_once.produce", produce)

    def handed_over(wanted: MicroBatch) -> bool:
        """Whether its deliveries were reported."""
        hand_over_at_last(exactly_once, wanted)
        return reported[-1]

    exactly_once.open()
    assert not handed_over(batch(0))
    mock.fail(Api.TXN_OFFSET_COMMIT, KafkaError.ILLEGAL_GENERATION)
    with pytest.raises(BatchAborted):
        exactly_once.commit(batch(5))
    other = OutputRecord("facts", 1, b"key", b"of another partition", (), 0)
    assert not handed_over(MicroBatch([other], "requests", {1: Position(9, "generation:1:0")}))
    assert handed_over(batch(3))  # however long it took
    assert handed_over(batch(5))
    assert not handed_over(batch(6))


def hand_over_at_last(transaction: Transaction, wanted: MicroBatch) -> None:
    """As a worker does it: again after an abort. librdkafka takes one more to count anew after a refused record."""
    with suppress(BatchAborted):
        transaction.commit(wanted)
        return
    transaction.commit(wanted)


@pytest.mark.parametrize(
    ("api", "code", "expected"),
    [
        (Api.PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, ProducerFailed),
        (Api.ADD_PARTITIONS_TO_TXN, KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (Api.ADD_OFFSETS_TO_TXN, KafkaError.PRODUCER_FENCED, Fenced),
        (Api.END_TXN, KafkaError.INVALID_PRODUCER_EPOCH, Fenced),
        (Api.END_TXN, KafkaError.PRODUCER_FENCED, Fenced),
        (Api.ADD_OFFSETS_TO_TXN, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ProducerFailed),
        (Api.END_TXN, KafkaError.INVALID_TXN_STATE, TransactionUnknown),
    ],
)
@pytest.mark.filterwarnings("ignore:Producer abort_transaction failed:RuntimeWarning")
def test_a_fatal_error_ends_the_producer(
    mock: MockCluster, exactly_once: ExactlyOnce, api: Api, code: int, expected: type[ProducerFailed]
) -> None:
    exactly_once.open()
    mock.fail(api, code)
    with pytest.raises(ProducerFailed) as caught:
        exactly_once.commit(batch(0))
    assert type(caught.value) is expected


def test_a_producer_that_is_not_let_in_says_so(mock: MockCluster, exactly_once: ExactlyOnce) -> None:
    mock.fail(Api.INIT_PRODUCER_ID, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(ProducerFailed, match="authorization failed"):
        exactly_once.open()


@pytest.mark.parametrize(
    ("api", "code", "expected"),
    [
        (Api.PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE, Undeliverable),
        (Api.PRODUCE, KafkaError.INVALID_REQUIRED_ACKS, BatchAborted),
        (Api.OFFSET_COMMIT, KafkaError.UNKNOWN_MEMBER_ID, BatchAborted),
        (Api.OFFSET_COMMIT, KafkaError.ILLEGAL_GENERATION, BatchAborted),
        (Api.OFFSET_COMMIT, KafkaError.GROUP_AUTHORIZATION_FAILED, BatchAborted),
    ],
)
def test_without_transactions_a_refusal_aborts_the_batch_too(
    mock: MockCluster, at_least_once: AtLeastOnce, api: Api, code: int, expected: type[BatchAborted]
) -> None:
    at_least_once.commit(batch(0))
    mock.fail(api, code)
    with pytest.raises(BatchAborted) as caught:
        at_least_once.commit(batch(1))
    assert type(caught.value) is expected
    hand_over_at_last(at_least_once, batch(1))
    assert facts(mock)[-1] == b"fact 1"
