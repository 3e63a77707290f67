"""The embedded broker is found by its store, and only while it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from service.embedded import ADDRESS_FILE, EmbeddedBroker, find_embedded
from service.errors import EmbeddedBrokerError


def test_it_serves_and_is_found_while_it_runs(tmp_path: Path) -> None:
    store = tmp_path / "not" / "there"
    with EmbeddedBroker(store, most_facts=3) as broker:
        address = find_embedded(store)
        assert (address.bootstrap, address.generation) == (broker.bootstrap, broker.generation)
        assert (address.pid, address.http, address.most_facts) == (os.getpid(), None, 3)
        assert AdminClient({"bootstrap.servers": address.bootstrap, "log_level": 4}).list_topics(timeout=10).brokers
        broker.announce("http://127.0.0.1:8080")
        assert find_embedded(store).http == "http://127.0.0.1:8080"
    assert list(store.iterdir()) == []
    with pytest.raises(EmbeddedBrokerError, match=r"no embedded broker runs on the store .*litehit serve --embedded"):
        find_embedded(store)


def test_each_start_is_a_generation_of_its_own(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    generations = set()
    for _ in range(3):
        with broker:
            generations.add(broker.generation)
    assert len(generations) == 3


def test_one_store_has_one_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as first, EmbeddedBroker(tmp_path / "other"):
        with pytest.raises(EmbeddedBrokerError, match=rf"process {os.getpid()} already runs .* \(--store\)"):
            EmbeddedBroker(tmp_path).start()
        assert find_embedded(tmp_path).generation == first.generation


def test_a_file_that_a_crash_left_is_told_and_replaced(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    left = broker.start().model_dump_json()
    broker.stop()
    (tmp_path / ADDRESS_FILE).write_text(left)
    with pytest.raises(EmbeddedBrokerError, match="does not answer: it ended without removing the file"):
        find_embedded(tmp_path)
    with broker:
        assert find_embedded(tmp_path).generation == broker.generation
        assert broker.died is not None
        assert broker.died.model_dump_json() == left
    with broker:
        assert broker.died is None


def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / ADDRESS_FILE).write_text("{}")
    with pytest.raises(EmbeddedBrokerError, match=rf"{ADDRESS_FILE} is no address of an embedded broker"):
        find_embedded(tmp_path)


def test_a_broker_that_is_not_started_has_no_address(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.stop()
    with pytest.raises(EmbeddedBrokerError, match="not started"):
        _ = broker.bootstrap
