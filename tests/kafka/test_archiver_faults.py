"""Archivers that die, race, or lose their topic, on a real Kafka: one chain, every committed fact once."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from schemas.dead_letter import SOURCE_HEADER
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog, CatalogView
from service.archive.facts_offsets import FactsOffsets
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, read_table
from service.crash_points import CrashPoint
from service.errors import TopicsError
from service.settings import Settings
from service.topic_watch import TopicWatch
from service.topics import TopicLayout, prepare_topics
from tests import lanes_harness as harness
from tests.archive_facts import made_fact
from tests.archiver_harness import RunningArchiver
from tests.cli_harness import RunningService
from tests.kafka.broker import KafkaCluster

Rows = dict[tuple[str, int], list[tuple[int, bytes]]]
"""Offset and JSON of each fact, by generation and partition."""


class Lanes:
    """Commits facts in transactions, and aborts some, as lane workers do, on a topic that is new.

    Attributes:
        ends: last stable offset of each partition.
    """

    def __init__(self, settings: Settings, partitions: int) -> None:
        self._topic = settings.facts_topic
        self._partitions = partitions
        self._made = 0
        self._settings = settings
        self.ends = [0] * partitions
        self._producer = Producer(
            {"bootstrap.servers": settings.bootstrap, "transactional.id": settings.facts_topic, "log_level": 4}
        )
        self._producer.init_transactions(30)

    def commit(self, facts: int) -> None:
        """A transaction of so many new facts on each partition; before it one that is aborted."""
        self._send(3)
        self._producer.abort_transaction(30)
        self._send(facts)
        self._producer.commit_transaction(30)
        # Each left a marker on each partition; a commit answers before its markers are written.
        self.ends = [end + 3 + 1 + facts + 1 for end in self.ends]
        offsets = FactsOffsets(self._settings, str(self._settings.bootstrap))
        try:
            harness.wait_for(lambda: list(offsets.ends(range(self._partitions)).values()) == self.ends)
        finally:
            offsets.close()

    def _send(self, facts: int) -> None:
        self._producer.begin_transaction()
        for partition in range(self._partitions):
            for number in range(self._made, self._made + facts):
                source = f"requests/{partition}/{number}".encode()
                value = made_fact(1000 * partition + number).to_json()
                self._producer.produce(self._topic, value, b"key", partition, headers=[(SOURCE_HEADER, source)])
        assert self._producer.flush(150) == 0
        self._made += facts


def committed(settings: Settings, layout: TopicLayout) -> Rows:
    """What a read_committed reader sees now."""
    rows: Rows = defaultdict(list)
    for record in harness.read_topic(str(settings.bootstrap), settings.facts_topic, layout.partitions):
        rows[layout.facts_generation, record.partition].append((record.offset, record.value or b""))
    return dict(rows)


def view(settings: Settings) -> CatalogView:
    catalog = Catalog(open_store(settings.store, for_writing=False))
    catalog.refresh()
    return catalog.view


def archived(settings: Settings) -> Rows:
    """What the segments hold; every chain must be whole."""
    found = view(settings)
    assert found.faults == ()
    store = open_store(settings.store, for_writing=False)
    rows: Rows = defaultdict(list)
    for info in found.segments:
        facts = ArchivedFacts.from_table(read_table(store, info.path)[1])
        key = info.chain.generation, info.chain.partition
        rows[key] += zip(facts.fact_offsets.tolist(), (fact.to_json() for fact in facts.facts), strict=True)
    for chain in found.chains.values():
        assert all(one.end_offset == following.base_offset for one, following in pairwise(chain.segments))
    return dict(rows)


@contextmanager
def archive_process(settings: Settings, rows: int, crash: str | None = None) -> Iterator[RunningService]:
    """`litehit serve --roles archive`."""
    variables = {
        "LITEHIT_BOOTSTRAP": str(settings.bootstrap),
        "LITEHIT_REQUESTS_TOPIC": settings.requests_topic,
        "LITEHIT_FACTS_TOPIC": settings.facts_topic,
        "LITEHIT_DEAD_LETTERS_TOPIC": settings.dead_letters_topic,
        "LITEHIT_ARCHIVE_GROUP_ID": settings.facts_topic,
        "LITEHIT_SEGMENT_ROWS": str(rows),
    }
    if crash is not None:
        variables["LITEHIT_CRASH_POINT"] = crash
    service = RunningService("--roles", "archive", "--store", settings.store, settings=variables)
    try:
        yield service
    finally:
        service.close()


def test_two_archiver_processes_at_once_give_one_chain(settings: Settings, layout: TopicLayout) -> None:
    lanes = Lanes(settings, layout.partitions)
    with archive_process(settings, rows=17) as one, archive_process(settings, rows=23) as other:
        for service in (one, other):
            service.wait_for_event("archive_partition_begins")
        for _ in range(30):
            lanes.commit(20)
        for service in (one, other):
            service.wait_until(lambda: sum(map(len, archived(settings).values())) >= 3 * 600 - 3 * 23)
            assert service.stop(signal.SIGTERM) == 0
    assert archived(settings) == committed(settings, layout)
    lost = [event for service in (one, other) for event in service.events if event["event"] == "segment_race_lost"]
    assert lost


@pytest.mark.parametrize("point", [CrashPoint.MID_PUBLISH, CrashPoint.AFTER_PUBLISH])
def test_kills_around_publishing_leave_one_chain_with_every_fact_once(
    settings: Settings, layout: TopicLayout, point: CrashPoint
) -> None:
    lanes = Lanes(settings, layout.partitions)
    for passes in (2, 3, 5):
        lanes.commit(40)
        with archive_process(settings, rows=15, crash=f"{point}:{passes}") as service:
            assert service.process.wait(60) == -signal.SIGKILL
        left = list(Path(settings.store).rglob(".tmp-*"))
        assert bool(left) == (point is CrashPoint.MID_PUBLISH)
    lanes.commit(40)
    wanted = committed(settings, layout)
    with archive_process(settings, rows=15) as service:
        service.wait_until(lambda: sum(map(len, archived(settings).values())) >= 3 * 4 * 40 - 3 * 15)
        assert service.stop(signal.SIGTERM) == 0
    assert archived(settings) == wanted
    assert list(Path(settings.store).rglob(".tmp-*")) == []


def delete_facts_topic(kafka: KafkaCluster, settings: Settings) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (deleted,) = admin.delete_topics([settings.facts_topic]).values()
    deleted.result(30)


def recreate(kafka: KafkaCluster, settings: Settings) -> TopicLayout:
    """Delete the facts topic and create it again, as an operator would."""
    before = prepare_topics(settings, kafka.bootstrap)
    delete_facts_topic(kafka, settings)
    deadline = time.monotonic() + 30
    while True:
        try:
            after = prepare_topics(settings, kafka.bootstrap)
        except TopicsError:  # it goes while it is looked at
            continue
        if after.facts_generation != before.facts_generation:
            return after
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_topic_recreated_under_a_running_archiver_begins_a_new_chain(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout
) -> None:
    """Also where the new one has facts at once on the offsets at which the old one was read on."""
    settings = settings.model_copy(update={"archive_group_id": settings.facts_topic})
    watch = TopicWatch(settings, kafka.bootstrap, settings.facts_topic)
    lanes = Lanes(settings, layout.partitions)
    lanes.commit(5)
    wanted = committed(settings, layout)
    with RunningArchiver(settings, kafka.bootstrap, layout, watch=watch) as running:
        running.wait_consumed(lanes.ends)
        assert archived(settings) == {}
        again = recreate(kafka, settings)
        lanes = Lanes(settings, layout.partitions)
        lanes.commit(60)
        new = [ChainKey(settings.facts_topic, again.facts_generation, partition) for partition in range(3)]
        running.wait_until(lambda now: [one.chain for one in now.partitions] == new)
        running.wait_consumed(lanes.ends)
    assert archived(settings) == wanted | committed(settings, again)
    assert view(settings).faults == ()


def test_a_topic_recreated_between_runs_begins_a_new_chain(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout
) -> None:
    settings = settings.model_copy(update={"archive_group_id": settings.facts_topic})
    wanted: Rows = {}
    for facts in (9, 4, 30):
        lanes = Lanes(settings, layout.partitions)
        lanes.commit(facts)
        wanted |= committed(settings, layout)
        watch = TopicWatch(settings, kafka.bootstrap, settings.facts_topic)
        with RunningArchiver(settings, kafka.bootstrap, layout, watch=watch) as running:
            running.wait_consumed(lanes.ends)
        layout = recreate(kafka, settings)
    assert archived(settings) == wanted
    assert len({generation for generation, _ in wanted}) == 3


def test_a_topic_that_is_away_for_a_while_is_waited_for(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout
) -> None:
    settings = settings.model_copy(update={"archive_group_id": settings.facts_topic})
    lanes = Lanes(settings, layout.partitions)
    lanes.commit(5)
    wanted = committed(settings, layout)
    watch = TopicWatch(settings, kafka.bootstrap, settings.facts_topic)
    with RunningArchiver(settings, kafka.bootstrap, layout, watch=watch) as running:
        running.wait_consumed(lanes.ends)
        delete_facts_topic(kafka, settings)
        running.wait_until(lambda now: now.starting is not None and "does not exist" in now.starting)
        assert archived(settings) == wanted, "what was consumed of it is kept"
        again = prepare_topics(settings, kafka.bootstrap)
        lanes = Lanes(settings, layout.partitions)
        lanes.commit(2)
        running.wait_until(lambda now: bool(now.partitions) and now.starting is None)
        running.wait_consumed(lanes.ends)
    assert archived(settings) == wanted | committed(settings, again)


def test_expired_facts_leave_a_recorded_gap_and_nothing_else_is_missing(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout
) -> None:
    settings = settings.model_copy(update={"archive_group_id": settings.facts_topic, "accept_gap": True})
    lanes = Lanes(settings, layout.partitions)
    lanes.commit(5)
    with RunningArchiver(settings, kafka.bootstrap, layout) as running:
        running.wait_consumed(lanes.ends)
    archived_end = lanes.ends[0]
    lanes.commit(20)
    wanted = committed(settings, layout)
    low = archived_end + 12
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(settings.facts_topic, 0, low)]).values()
    assert deleted.result(30).low_watermark == low
    expired = range(archived_end, low)
    wanted[layout.facts_generation, 0] = [row for row in wanted[layout.facts_generation, 0] if row[0] not in expired]
    with RunningArchiver(settings, kafka.bootstrap, layout) as running:
        running.wait_consumed(lanes.ends)
    assert archived(settings) == wanted
    gaps = {key.partition: chain.gaps for key, chain in view(settings).chains.items()}
    assert [(gap.base_offset, gap.end_offset) for gap in gaps[0]] == [(archived_end, low)]
    assert gaps[1] == gaps[2] == ()
