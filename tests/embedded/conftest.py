"""An embedded broker with its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded import EmbeddedBroker
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests import lanes_harness as harness


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "store") as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(embedded=True, store=str(tmp_path / "store"))


@pytest.fixture
def layout(broker: EmbeddedBroker, settings: Settings) -> TopicLayout:
    return prepare_topics(settings, broker.bootstrap, broker.generation)


@pytest.fixture
def run_worker(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, tmp_path: Path
) -> Callable[..., harness.RunningWorker]:
    def run(**options: Any) -> harness.RunningWorker:
        return harness.RunningWorker(settings, broker.bootstrap, layout, harness.registry(tmp_path), **options)

    return run
