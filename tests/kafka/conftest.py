"""A real Kafka for the whole test session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

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
