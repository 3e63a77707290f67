"""Archivers and the upkeep of several processes on one store, over the embedded broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry

from service.archive.open_store import open_store
from service.archive.segment import ChainKey
from service.archive.upkeep import Upkeep
from service.embedded import EmbeddedBroker
from service.metrics import UpkeepMetrics
from service.settings import Settings
from service.topics import TopicLayout
from tests.archiver_harness import FactsTopic, RunningArchiver, archived
from tests.chains import chain_of

MERGING = {"compact_rows": 512, "compact_parts": 2, "compact_after_seconds": 0, "upkeep_seconds": 0.02}


@contextmanager
def upkeep(settings: Settings) -> Iterator[Upkeep]:
    """One process's upkeep, in a thread."""
    running = Upkeep(
        settings.model_copy(update=MERGING), open_store(settings.store), UpkeepMetrics(CollectorRegistry())
    )
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            running.run(stop)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield running
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert failed == []


def test_two_archivers_and_two_upkeeps_at_once_give_one_chain(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout
) -> None:
    """With nothing seen for long before it is merged, so that an archiver finds its segments merged away under it."""
    topic = FactsTopic(settings, broker.bootstrap)
    first, second = (settings.model_copy(update={"segment_rows": rows}) for rows in (30, 50))
    with (
        upkeep(settings),
        upkeep(settings),
        RunningArchiver(first, broker.bootstrap, layout) as one,
        RunningArchiver(second, broker.bootstrap, layout) as other,
    ):
        for _ in range(8):
            topic.send(0, 200)
            topic.send(1, 130)
        one.wait_consumed([1600, 1040, 0, 0])
        other.wait_consumed([1600, 1040, 0, 0])
    last = Upkeep(settings.model_copy(update=MERGING), open_store(settings.store), UpkeepMetrics(CollectorRegistry()))
    for _ in range(3):
        last.look(threading.Event())
    assert archived(settings.store, layout.facts_generation) == {0: list(range(1600)), 1: list(range(1040))}
    store = open_store(settings.store)
    chain = chain_of(store, ChainKey(settings.facts_topic, layout.facts_generation, 0))
    assert (chain.superseded, chain.overlaps) == ((), ())
    assert len(chain.segments) < 20
    for running in (one, other):
        assert running.listener.tails == {0: [], 1: []}


def test_an_archiver_whose_facts_all_expired_goes_on_where_it_ended(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout
) -> None:
    topic = FactsTopic(settings, broker.bootstrap)
    topic.send(0, 20)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([20, 0, 0, 0])
    removing = settings.model_copy(update={"retention_seconds": 1e-9})
    Upkeep(removing, open_store(settings.store), UpkeepMetrics(CollectorRegistry())).look(threading.Event())
    assert archived(settings.store, layout.facts_generation) == {}
    topic.send(0, 5)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([25, 0, 0, 0])
        assert running.listener.tails[0] == [20, 21, 22, 23, 24]
    assert archived(settings.store, layout.facts_generation) == {0: [20, 21, 22, 23, 24]}
