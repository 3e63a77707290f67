"""Deployments on the session's broker; their processes end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.faults.deployment import Deployment
from tests.kafka.broker import KafkaCluster


@pytest.fixture
def deploy(kafka: KafkaCluster, tmp_path: Path) -> Iterator[Callable[..., Deployment]]:
    """Makes a deployment; arguments are the deployment's."""
    with ExitStack() as running:

        def make(*arguments: Any, **changes: Any) -> Deployment:
            deployment = Deployment(kafka.bootstrap, tmp_path, *arguments, **changes)
            running.callback(deployment.close)
            return deployment

        yield make
