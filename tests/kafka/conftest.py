"""A real Kafka for the whole test session, and topics of its own for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from litehit.registry import Registry
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests import lanes_harness as harness
from tests.kafka.broker import KafkaCluster, KafkaUnavailable, kafka_jars


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One running broker. Where it can't run the tests skip with the reason; under CI=true they fail."""
    try:
        jars = kafka_jars()
    except KafkaUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    with KafkaCluster(jars, tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def settings(kafka: KafkaCluster) -> Settings:
    """Settings with names that no other test uses."""
    name = uuid.uuid4().hex[:8]
    return Settings(
        bootstrap=kafka.bootstrap,
        requests_topic=f"requests-{name}",
        facts_topic=f"facts-{name}",
        dead_letters_topic=f"dead-letters-{name}",
        group_id=f"lanes-{name}",
        transactional_id=f"lanes-{name}-0",
        create_topics=True,
        partitions=3,
        batch_records=50,
    )


@pytest.fixture
def layout(kafka: KafkaCluster, settings: Settings) -> TopicLayout:
    """The topics, made."""
    return prepare_topics(settings, kafka.bootstrap)


@pytest.fixture
def known(tmp_path: Path) -> Registry:
    """The registry of these tests."""
    return harness.registry(tmp_path)


@pytest.fixture
def run_worker(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout, known: Registry
) -> Callable[..., harness.RunningWorker]:
    """Starts a worker; keyword arguments change its settings."""

    def run(**changes: Any) -> harness.RunningWorker:
        return harness.RunningWorker(settings.model_copy(update=changes), kafka.bootstrap, layout, known)

    return run
