"""The publisher on a broker: an instance keeps its partition and its order, and nothing expires before it is read."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from service.embedded import EmbeddedBroker
from service.errors import PublishError
from service.publisher import Publisher
from service.record_limits import MAX_RECORD_BYTES
from service.settings import Settings

TOPIC = "litehit.requests"
PARTITIONS = 4


def _consumer(bootstrap: str, group: str) -> Consumer:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    return consumer


def _read(consumer: Consumer, count: int, *, commit: bool = False) -> dict[int, list[tuple[str, bytes]]]:
    read: dict[int, list[tuple[str, bytes]]] = {}
    for _ in range(count):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        key, value, partition = message.key(), message.value(), message.partition()
        assert key is not None
        assert value is not None
        assert partition is not None
        read.setdefault(partition, []).append((key.decode(), value))
        if commit:
            consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return read


def test_an_instance_keeps_its_partition_and_its_order(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(Settings(embedded=True), broker.bootstrap)
        # The partitions that Kafka's own clients choose for these keys: murmur2, then modulo.
        expected = {"conversation": 2, "synthetic": 3, "conversation-1024": 3, "synthetic-1024": 0}
        for number in range(50):
            publisher.send((key, b"%d" % number, {}) for key in expected)
        assert publisher.finish() == 200
        read = _read(_consumer(broker.bootstrap, "test"), 200)
    for key, partition in expected.items():
        assert [value for name, value in read[partition] if name == key] == [b"%d" % number for number in range(50)]


def test_nothing_expires_while_the_group_is_slower(tmp_path: Path) -> None:
    settings = Settings(embedded=True)
    records, size = 60, 200_000  # 12 MB through a partition that keeps 5 MiB
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(settings, broker.bootstrap, window_bytes=2 * 2**20)
        consumer = _consumer(broker.bootstrap, settings.group_id)
        read: dict[int, list[tuple[str, bytes]]] = {}
        reader = threading.Thread(target=lambda: read.update(_read(consumer, records, commit=True)))
        reader.start()
        publisher.send(("one", b"%d" % number + b" " * size, {}) for number in range(records))
        assert publisher.finish() == records
        reader.join(30)
    (values,) = read.values()
    assert [int(value) for _, value in values] == list(range(records))


def test_waiting_in_vain_ends_with_what_the_topic_has(tmp_path: Path) -> None:
    asked: list[float] = []

    def hopeless(seconds: float) -> str | None:
        asked.append(seconds)
        return "the lanes take no more" if len(asked) == 5 else None

    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(Settings(embedded=True), broker.bootstrap, 1, hopeless)
        publisher.send([("one", b"more than the window", {})])
        assert publisher.finish() == 1
        with pytest.raises(PublishError, match=r"^the lanes take no more; of 1 record sent the topic has 1; publish"):
            publisher.send([("one", b"2", {})])
    assert asked[0] < 1
    assert sorted(asked) == asked


def test_a_broker_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.publisher._TIMEOUT_SECONDS", 0.5)
    with pytest.raises(PublishError, match=r"127\.0\.0\.1:1: .*see that Kafka runs there"):
        Publisher(Settings(), "127.0.0.1:1")


def test_a_broker_that_stops_answering_is_told_with_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.publisher._TIMEOUT_SECONDS", 5)
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(Settings(embedded=True), broker.bootstrap, window_bytes=1)
        publisher.send([("one", b"more than the window", {})])
        assert publisher.finish() == 1
    monkeypatch.setattr("service.publisher._TIMEOUT_SECONDS", 0.5)
    with pytest.raises(PublishError, match=r"took 1 record and then did not answer .* publish again"):
        publisher.send([("one", b"2", {})])


def test_a_record_that_is_too_large_is_refused_with_what_to_set(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(Settings(embedded=True), broker.bootstrap)
        with pytest.raises(PublishError, match=r"a record of 16,777,216 bytes: .*max\.message\.bytes=33554432.*half$"):
            publisher.send([("one", bytes(MAX_RECORD_BYTES), {})])


@pytest.mark.parametrize(
    ("have_left", "told"), [(True, "; of 2 records sent the topic has 2; publish again into a new"), (False, "has 0$")]
)
def test_what_stands_before_a_refused_record_is_told(tmp_path: Path, have_left: bool, told: str) -> None:
    """What has not left by then does not: the publishing will be repeated."""
    with EmbeddedBroker(tmp_path) as broker:
        settings = Settings(embedded=True, kafka={"linger.ms": "20" if have_left else "60000"})
        publisher = Publisher(settings, broker.bootstrap)
        publisher.send([("one", b"1", {}), ("two", b"2", {})])
        if have_left:
            assert publisher.finish() == 2
        with pytest.raises(PublishError, match=told):
            publisher.send([("one", bytes(MAX_RECORD_BYTES), {})])


@pytest.mark.parametrize("window_bytes", [None, 2**20])
def test_a_record_that_does_not_arrive_is_told(tmp_path: Path, window_bytes: int | None) -> None:
    settings = Settings(embedded=True, kafka={"message.timeout.ms": "500"})
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(settings, broker.bootstrap, window_bytes)
    publisher.send([("one", b"12", {})])
    with pytest.raises(
        PublishError, match=r"a record of 2 bytes: .*timed out.*; of 1 record sent the topic has at least 0; publish"
    ):
        publisher.finish()


def test_what_waits_for_the_broker_is_bounded(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        publisher = Publisher(Settings(embedded=True, kafka={"message.timeout.ms": "500"}), broker.bootstrap)
    coming = iter(range(1_000))
    value = bytes(2**20)
    with pytest.raises(PublishError, match="timed out"):
        publisher.send(("one", value, {}) for _ in coming)
    assert next(coming) < 100
