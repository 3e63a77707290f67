"""The archiver over the embedded broker: everything but transactions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.errors import StoreError
from service.archive.open_store import open_store
from service.archive.segment import ChainKey
from service.embedded import EmbeddedBroker
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests.archive_facts import made_fact
from tests.archiver_harness import FactsTopic, RunningArchiver, archived
from tests.archiver_stores import LeapingClock, RefusingStore

LARGE = made_fact(0).model_copy(update={"trace_id": "x" * 10_000}).to_json()


@pytest.fixture
def topic(broker: EmbeddedBroker, settings: Settings, layout: TopicLayout) -> FactsTopic:
    return FactsTopic(settings, broker.bootstrap)


def group_offsets(bootstrap: str, settings: Settings, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": settings.archive_group_id, "log_level": 4})
    try:
        places = [TopicPartition(settings.facts_topic, partition) for partition in range(partitions)]
        return [place.offset for place in consumer.committed(places, timeout=10)]
    finally:
        consumer.close()


def chain_of(settings: Settings, layout: TopicLayout, partition: int) -> Chain:
    catalog = Catalog(open_store(settings.store, for_writing=False))
    catalog.refresh()
    return catalog.view.chain(ChainKey(settings.facts_topic, layout.facts_generation, partition))


def test_facts_are_heard_at_once_and_in_the_store_after_a_clean_stop(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        topic.send(0, 1200)
        topic.send(2, 7)
        status = running.wait_consumed([1200, 0, 7, 0])
        assert [one.tail_rows for one in status.partitions] == [1200, 0, 7, 0]
        assert running.listener.tails[0] == list(range(1200))
        assert archived(settings.store, layout.facts_generation) == {}
        running.wait_until(lambda now: [one.lag for one in now.partitions] == [0, 0, 0, 0])
        assert running.metric("lag_records", partition="0") == 0
        assert running.metric("tail_facts", partition="0") == 1200
    assert archived(settings.store, layout.facts_generation) == {0: list(range(1200)), 2: list(range(7))}
    assert [info.end_offset for info in running.listener.segments[0]] == [1200]
    assert running.listener.tails[0] == []
    assert running.metric("segments_total", partition="0") == 1


def test_a_restart_goes_on_from_the_store_whatever_the_group_committed(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    topic.send(0, 10)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([10, 0, 0, 0])
    topic.send(0, 10)
    for segment in Path(settings.store).rglob("*.parquet"):
        segment.unlink()
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([20, 0, 0, 0])
    topic.send(0, 5)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([25, 0, 0, 0])
        assert running.listener.tails[0] == list(range(20, 25))
    assert archived(settings.store, layout.facts_generation) == {0: list(range(25))}


@pytest.mark.parametrize("embedded", [True, False])
def test_the_group_shows_what_is_consumed_or_what_is_safe(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic, embedded: bool
) -> None:
    settings = settings.model_copy(update={"embedded": embedded, "segment_rows": 8})
    topic.send(1, 20)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([0, 20, 0, 0])
        shown = 20 if embedded else 16
        running.wait_until(lambda _: group_offsets(broker.bootstrap, settings, 4) == [0, shown, 0, 0])
    assert group_offsets(broker.bootstrap, settings, 4) == [0, 20, 0, 0]


def test_age_publishes(broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic) -> None:
    clock = LeapingClock()
    with RunningArchiver(settings, broker.bootstrap, layout, clock=clock) as running:
        topic.send(3, 4)
        running.wait_consumed([0, 0, 0, 4])
        clock.leap(settings.segment_seconds)
        assert running.wait_for(3, lambda one: one.published_end == 4).tail_rows == 0


def test_two_archivers_at_once_give_one_chain(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    first = settings.model_copy(update={"segment_rows": 70})
    second = settings.model_copy(update={"segment_rows": 90})
    with (
        RunningArchiver(first, broker.bootstrap, layout) as one,
        RunningArchiver(second, broker.bootstrap, layout) as other,
    ):
        for _ in range(10):
            topic.send(0, 200)
            topic.send(1, 130)
        one.wait_consumed([2000, 1300, 0, 0])
        other.wait_consumed([2000, 1300, 0, 0])
    assert archived(settings.store, layout.facts_generation) == {0: list(range(2000)), 1: list(range(1300))}
    for running in (one, other):
        assert running.listener.tails == {0: [], 1: []}
        covered = [(info.base_offset, info.end_offset) for info in running.listener.segments[0]]
        assert covered[0][0] == 0
        assert all(before[1] == after[0] for before, after in pairwise(covered))
    lost = sum(running.metric("lost_races_total", partition="0") for running in (one, other))
    assert lost > 0


def test_a_record_that_is_no_fact_stops_its_partition_alone(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    topic.send(0, 5)
    topic.send_value(0, b'{"not":"a fact"}')
    topic.send(1, 5)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        stopped = running.wait_for(0, lambda one: one.error is not None)
        assert f"{settings.facts_topic}/{layout.facts_generation}/0, offset 5: trace_id" in str(stopped.error)
        assert (stopped.published_end, stopped.tail_rows) == (5, 0)
        topic.send(1, 5)
        running.wait_for(1, lambda one: one.next_offset == 10)
        assert running.archiver.status().stopped == (f"partition 0 stopped: {stopped.error}",)
        assert running.metric("stopped", partition="0") == 1
        assert running.archiver.backlog() == 0, "no one waits for a partition that stopped"
    assert archived(settings.store, layout.facts_generation) == {0: list(range(5)), 1: list(range(10))}


def test_facts_that_expired_unarchived_stop_their_partition_at_the_start(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    topic.send_value(0, LARGE, 900)  # of which the broker keeps 5 MiB
    topic.send(1, 5)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        stopped = running.wait_for(0, lambda one: one.error is not None)
        assert f"{settings.facts_topic}/{layout.facts_generation}/0: the archive goes on at offset 0, but" in str(
            stopped.error
        )
        assert "offsets missing" in str(stopped.error)
        running.wait_for(1, lambda one: one.next_offset == 5)
    assert archived(settings.store, layout.facts_generation) == {1: list(range(5))}


def test_accepted_gaps_are_recorded_and_everything_else_is_archived(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    """At the start of an archive, and in its midst while the store refuses."""
    store, clock = RefusingStore(settings.store), LeapingClock()
    settings = settings.model_copy(update={"segment_rows": 500, "accept_gap": True})
    topic.send_value(0, LARGE, 900)  # of which the broker keeps 5 MiB
    topic.send(1, 5)
    with RunningArchiver(settings, broker.bootstrap, layout, store=store, clock=clock) as running:
        running.wait_consumed([900, 5, 0, 0])
        store.refuse()
        clock.leap(settings.segment_seconds)
        held = running.wait_for(0, lambda one: one.trouble is not None)
        running.wait_for(1, lambda one: one.trouble is not None)  # its pause must have begun before the leap
        topic.send_value(0, LARGE, 900)
        store.allow()
        clock.leap(1.0)
        running.wait_consumed([1800, 5, 0, 0])
        running.wait_for(1, lambda one: one.trouble is None)
        lost = running.metric("gap_offsets_total", partition="0")
        assert (running.archiver.status().waiting, running.archiver.status().stopped) == ((), ())
    chain = chain_of(settings, layout, 0)
    first, *later = chain.segments
    assert (first.base_offset, held.next_offset) == (0, 900)
    assert chain.faults == ()
    assert [gap.base_offset for gap in chain.gaps] == [0, 900]
    assert sum(gap.end_offset - gap.base_offset for gap in chain.gaps) == lost > 0
    assert sum(info.rows for info in chain.segments) + lost == 1800
    assert later[-1].end_offset == 1800


def test_a_torn_segment_at_the_end_is_set_aside_and_archived_again(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    settings = settings.model_copy(update={"segment_rows": 4})
    topic.send(0, 10)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([10, 0, 0, 0])
    *_, last = sorted(Path(settings.store).rglob("*.parquet"))
    torn = last.read_bytes()[:-40]
    last.write_bytes(torn)
    topic.send(0, 3)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([13, 0, 0, 0])
    assert archived(settings.store, layout.facts_generation) == {0: list(range(13))}
    assert last.with_name(f"{last.name}.damaged").read_bytes() == torn


def test_a_torn_segment_whose_facts_expired_stops_its_partition(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    topic.send(0, 10)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([10, 0, 0, 0])
    (only,) = Path(settings.store).rglob("*.parquet")
    only.write_bytes(b"")
    topic.send_value(0, LARGE, 900)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        stopped = running.wait_for(0, lambda one: one.error is not None)
        assert "damaged" in str(stopped.error)
        assert "restore the file from a copy" in str(stopped.error)
    assert only.read_bytes() == b""
    assert group_offsets(broker.bootstrap, settings, 4)[0] == 10, "what is safe is not unknown to the group now"


def test_a_store_that_refuses_is_tried_again_and_nothing_is_lost(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    store, clock = RefusingStore(settings.store), LeapingClock()
    settings = settings.model_copy(update={"segment_rows": 10})
    store.refuse()
    with RunningArchiver(settings, broker.bootstrap, layout, store=store, clock=clock) as running:
        topic.send(0, 35)
        topic.send(1, 3)
        held = running.wait_for(0, lambda one: one.trouble is not None)
        assert 10 <= held.tail_rows <= 20, "what can't be written, and at most as much behind it"
        assert "No space left on device" in str(held.trouble)
        assert running.archiver.status().waiting == (f"partition 0 can't publish and tries again: {held.trouble}",)
        running.wait_for(1, lambda one: one.next_offset == 3)
        assert running.archiver.backlog() == 35 - held.next_offset
        store.allow()
        clock.leap(1.0)
        assert running.wait_for(0, lambda one: one.next_offset == 35).trouble is None
        assert running.metric("publish_failures_total", partition="0") == 1
    assert archived(settings.store, layout.facts_generation) == {0: list(range(35)), 1: list(range(3))}


def test_facts_that_expire_during_a_pause_stop_their_partition(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    store, clock = RefusingStore(settings.store), LeapingClock()
    settings = settings.model_copy(update={"segment_rows": 10})
    store.refuse()
    with RunningArchiver(settings, broker.bootstrap, layout, store=store, clock=clock) as running:
        topic.send(0, 10)
        running.wait_for(0, lambda one: one.trouble is not None)
        topic.send_value(0, LARGE, 900)
        store.allow()
        clock.leap(1.0)
        stopped = running.wait_for(0, lambda one: one.error is not None)
        assert "the archive goes on at offset 10, but the topic begins at offset" in str(stopped.error)
    assert archived(settings.store, layout.facts_generation) == {0: list(range(10))}


def test_what_can_not_be_published_at_the_end_is_an_error(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    store = RefusingStore(settings.store)
    topic.send(0, 5)
    with RunningArchiver(settings, broker.bootstrap, layout, store=store) as running:
        running.wait_consumed([5, 0, 0, 0])
        store.refuse()
        running.stop()
        assert isinstance(running.error, StoreError)
        running.error = None
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([5, 0, 0, 0])
    assert archived(settings.store, layout.facts_generation) == {0: list(range(5))}


def test_a_store_of_another_topic_is_noticed(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic, tmp_path: Path
) -> None:
    topic.send(0, 5)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        running.wait_consumed([5, 0, 0, 0])
    with EmbeddedBroker(tmp_path / "elsewhere") as empty:
        prepare_topics(settings, empty.bootstrap, layout.facts_generation)
        with RunningArchiver(settings, empty.bootstrap, layout) as running:
            stopped = running.wait_for(0, lambda one: one.error is not None)
            assert "the topic ends at offset 0, 5 offsets earlier" in str(stopped.error)
            running.wait_for(1, lambda one: one.error is None and one.lag == 0)


def test_the_backlog_counts_what_is_in_the_topic_now(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    running = RunningArchiver(settings, broker.bootstrap, layout)
    topic.send(0, 5)
    topic.send(1, 8)
    assert running.archiver.backlog() == 8
    assert running.archiver.status().waiting == ("the store's segments are not listed yet",)
    with running:
        running.wait_consumed([5, 8, 0, 0])
        assert running.archiver.backlog() == 0
    assert running.archiver.backlog() == 0


def test_nothing_waits_for_an_archiver_whose_partitions_all_stopped(
    broker: EmbeddedBroker, settings: Settings, layout: TopicLayout, topic: FactsTopic
) -> None:
    for partition in range(layout.partitions):
        topic.send_value(partition, b"no fact", 2)
    with RunningArchiver(settings, broker.bootstrap, layout) as running:
        status = running.wait_until(lambda now: bool(now.partitions) and all(one.error for one in now.partitions))
        assert len(status.stopped) == layout.partitions
        assert running.archiver.backlog() == 0
    assert archived(settings.store, layout.facts_generation) == {}
