"""The archiver where transactions are real."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from schemas.dead_letter import SOURCE_HEADER
from service.settings import Settings
from service.topics import TopicLayout
from tests.archive_facts import made_fact
from tests.archiver_harness import RunningArchiver, archived
from tests.kafka.broker import KafkaCluster


def produce(producer: Producer, topic: str, partition: int, offsets: range) -> None:
    for offset in offsets:
        source = f"requests/{partition}/{2 * offset}".encode()
        producer.produce(topic, made_fact(offset).to_json(), b"key", partition, headers=[(SOURCE_HEADER, source)])
    assert producer.flush(30) == 0


def test_only_committed_facts_are_archived_and_markers_leave_no_gap(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout, tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"store": str(tmp_path / "store"), "archive_group_id": settings.facts_topic})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": settings.facts_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    produce(producer, settings.facts_topic, 0, range(5))
    producer.commit_transaction(30)  # a marker at 5
    producer.begin_transaction()
    produce(producer, settings.facts_topic, 0, range(100, 103))  # at 6 to 8
    producer.abort_transaction(30)  # a marker at 9
    producer.begin_transaction()
    produce(producer, settings.facts_topic, 0, range(10, 13))
    with RunningArchiver(settings, kafka.bootstrap, layout) as running:
        open_transaction = running.wait_for(0, lambda one: one.next_offset == 10)
        assert running.listener.tails[0] == list(range(5))
        assert open_transaction.end_offset == 10, "the last stable offset, not the end of the log"
        producer.commit_transaction(30)  # a marker at 13
        running.wait_for(0, lambda one: one.next_offset == 14 and one.lag == 0)
    assert archived(settings.store, layout.facts_generation) == {0: [0, 1, 2, 3, 4, 10, 11, 12]}
    assert [info.end_offset for info in running.listener.segments[0]] == [14]

    # Everything expires. Nothing is missing, for the marker that ended the log belongs to the last segment.
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(settings.facts_topic, 0, 14)]).values()
    assert deleted.result(30).low_watermark == 14
    with RunningArchiver(settings, kafka.bootstrap, layout) as running:
        assert running.wait_for(0, lambda one: one.lag == 0).error is None
        producer.begin_transaction()
        produce(producer, settings.facts_topic, 0, range(14, 16))
        producer.commit_transaction(30)
        running.wait_for(0, lambda one: one.next_offset == 17)
    assert archived(settings.store, layout.facts_generation) == {0: [0, 1, 2, 3, 4, 10, 11, 12, 14, 15]}

    # What expires before it is archived is missing, and counted.
    producer.begin_transaction()
    produce(producer, settings.facts_topic, 0, range(17, 30))
    producer.commit_transaction(30)
    (deleted,) = admin.delete_records([TopicPartition(settings.facts_topic, 0, 20)]).values()
    assert deleted.result(30).low_watermark == 20
    with RunningArchiver(settings, kafka.bootstrap, layout) as running:
        stopped = running.wait_for(0, lambda one: one.error is not None)
        assert "goes on at offset 17, but the topic begins at offset 20: 3 offsets missing" in str(stopped.error)
        running.wait_for(1, lambda one: one.lag == 0)
