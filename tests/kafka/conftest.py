"""Topics of its own on the running Kafka for each test."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from litehit.registry import Registry
from service.archive.store import Store
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests import lanes_harness as harness
from tests.kafka.broker import KafkaCluster


@pytest.fixture
def settings(kafka: KafkaCluster, tmp_path: Path) -> Settings:
    """Settings with names that no other test uses."""
    name = uuid.uuid4().hex[:8]
    return Settings(
        bootstrap=kafka.bootstrap,
        store=str(tmp_path / "store"),
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
    """Starts a worker; keyword arguments change its settings, or what it is given beside them."""
    found, registered = layout, known

    def run(
        layout: TopicLayout = found,
        known: Registry = registered,
        into: Store | None = None,
        hold: Callable[[], bool] | None = None,
        **changes: Any,
    ) -> harness.RunningWorker:
        changed = settings.model_copy(update=changes)
        return harness.RunningWorker(changed, kafka.bootstrap, layout, known, store=into, hold=hold)

    return run
