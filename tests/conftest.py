"""Fixtures that every kind of test shares."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.kafka.broker import KafkaCluster, KafkaUnavailable, kafka_jars

# The first example compiles kernels, and machines are shared: no deadline. CI repeats the same examples in every run.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")

SHARED_TRACES = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "mooncake"


@pytest.fixture(scope="module", autouse=True)
def _clients_are_freed() -> Iterator[None]:
    """Each client of Kafka holds one of a process's 1,024 keys of thread-local storage, also one that waits in a cycle.

    A worker takes what it finds at its start for the program itself, and looks for cycles seldom.
    """
    yield
    gc.unfreeze()
    gc.collect()


@pytest.fixture(scope="session")
def mooncake_trace() -> Callable[[str], Path]:
    """Path of a real Mooncake trace by name, such as `conversation`; skips where the traces are absent."""

    def find(name: str) -> Path:
        path = SHARED_TRACES / f"{name}_trace.jsonl"
        if not path.is_file():
            reason = f"the real trace {path.name} is not beside this checkout (../shared/data/mooncake)"
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return find


@pytest.fixture(scope="session")
def jars() -> Path:
    """Folder of Kafka's jars. Where Kafka can't run the tests skip with the reason; under CI=true they fail."""
    try:
        return kafka_jars()
    except KafkaUnavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One running broker for the whole test session."""
    with KafkaCluster(jars, tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster
