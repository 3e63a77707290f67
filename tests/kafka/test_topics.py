"""Topics at start-up on a real Kafka: made where that is allowed, else an error that says what to run."""

from __future__ import annotations

import re

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from service.errors import TopicsError
from service.settings import Settings
from service.topics import prepare_topics
from tests import lanes_harness as harness
from tests.kafka.broker import KafkaCluster, free_ports


def create(kafka: KafkaCluster, **partitions: int) -> None:
    with AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 4}) as admin:
        topics = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in partitions.items()]
        for future in admin.create_topics(topics).values():
            future.result()
        # A broker may answer questions by what it knew before for a moment.
        harness.wait_for(lambda: set(partitions) <= set(admin.list_topics(timeout=10).topics))


def test_absent_topics_are_made_once_and_their_generations_stay(kafka: KafkaCluster, settings: Settings) -> None:
    first = prepare_topics(settings, kafka.bootstrap)
    assert first.partitions == 3
    assert first.requests_generation != first.facts_generation
    assert re.fullmatch(r"[\w-]{22}", first.requests_generation)
    again = prepare_topics(settings.model_copy(update={"partitions": 7, "create_topics": False}), kafka.bootstrap)
    assert again == first


def test_topics_that_are_made_follow_the_requests_topic(kafka: KafkaCluster, settings: Settings) -> None:
    create(kafka, **{settings.requests_topic: 5})
    assert prepare_topics(settings, kafka.bootstrap).partitions == 5


@pytest.mark.parametrize("create_topics", [None, False])
def test_a_missing_topic_says_what_to_run(kafka: KafkaCluster, settings: Settings, create_topics: bool | None) -> None:
    create(kafka, **{settings.requests_topic: 2})
    with pytest.raises(TopicsError) as caught:
        prepare_topics(settings.model_copy(update={"create_topics": create_topics}), kafka.bootstrap)
    message = str(caught.value)
    for topic in (settings.facts_topic, settings.dead_letters_topic):
        command = f"kafka-topics.sh --bootstrap-server {kafka.bootstrap} --create --topic {topic} --partitions 2"
        assert command in message
    assert f"--topic {settings.requests_topic}" not in message
    assert "LITEHIT_CREATE_TOPICS=true" in message


@pytest.mark.parametrize(("count", "remedy"), [(2, "--alter --topic {} --partitions 3"), (4, "--delete --topic {}")])
def test_a_wrong_partition_count_says_what_to_run(
    kafka: KafkaCluster, settings: Settings, count: int, remedy: str
) -> None:
    create(kafka, **{settings.requests_topic: 3, settings.facts_topic: count})
    with pytest.raises(TopicsError, match=rf"{settings.facts_topic} has {count} partitions, .* has 3") as caught:
        prepare_topics(settings, kafka.bootstrap)
    assert re.search(re.escape(remedy.format(settings.facts_topic)), str(caught.value))


def test_a_broker_that_does_not_answer_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.topics._ASK_SECONDS", 1.0)
    (port,) = free_ports(1)
    with pytest.raises(TopicsError, match=rf"127\.0\.0\.1:{port}: .*see that Kafka runs there"):
        prepare_topics(settings, f"127.0.0.1:{port}")
