"""`litehit verify` on a real Kafka: an undisturbed deployment passes, and whatever is planted in it is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from litehit.registry import Registry
from schemas.dead_letter import REASON_HEADER, SOURCE_HEADER
from service.archive.catalog import Catalog
from service.archive.errors import ArchiveError
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, describe, read_table
from service.archive.segment_writer import encode
from service.cli.verify import document, sentences
from service.errors import Difference
from service.lanes.counts import Ignored
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from service.verify.deployment import PartitionReport, Verification
from tests import lanes_harness as harness
from tests.archiver_harness import RunningArchiver
from tests.cli_harness import litehit
from tests.kafka.broker import KafkaCluster

COUNT = 400
POISON: list[bytes | None] = [b"{", b"", None, b'{"type":"request"}', b"x" * 5000]

Run = Callable[..., harness.RunningWorker]


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(
        update={
            "store": str(tmp_path / "store"),
            "archive_group_id": f"archive-{settings.group_id}",
            "segment_rows": 30,
            "dead_letter_max_bytes": 3000,
        }
    )


@dataclass
class Deployment:
    """Requests, what lanes and an archive made of them, and ways to disturb it."""

    settings: Settings
    layout: TopicLayout
    registry: Registry
    kafka: KafkaCluster
    places: list[tuple[int, int]]

    def verify(self) -> list[PartitionReport]:
        with self.open() as verification:
            return list(verification.partitions())

    def open(self) -> Verification:
        return Verification(self.settings, self.kafka.bootstrap, self.layout, self.registry)

    @property
    def busiest(self) -> int:
        """A partition with many records."""
        partitions = [partition for partition, _ in self.places]
        return max(set(partitions), key=partitions.count)

    @property
    def end(self) -> int:
        """End of the busiest partition's requests."""
        return 1 + max(offset for partition, offset in self.places if partition == self.busiest)

    def forge(self, which: str, change: Callable[[list[harness.Read]], Sequence[harness.Read]]) -> None:
        """Copy the facts or dead-letter topic, changed in the busiest partition, and audit the copy."""
        original = getattr(self.settings, which)
        records = harness.read_topic(self.kafka.bootstrap, original, self.layout.partitions)
        mine = [record for record in records if record.partition == self.busiest]
        others = [record for record in records if record.partition != self.busiest]
        self.settings = self.settings.model_copy(update={which: f"forged-{original}"})
        self.layout = prepare_topics(self.settings, self.kafka.bootstrap)
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 4})
        for record in [*others, *change(mine)]:
            headers: Any = list(record.headers)
            producer.produce(f"forged-{original}", record.value, record.key, record.partition, headers=headers)
        assert producer.flush(30) == 0
        producer.close()

    def segments(self) -> list[SegmentInfo]:
        """Of the busiest partition."""
        catalog = Catalog(open_store(self.settings.store))
        catalog.refresh()
        key = ChainKey(self.settings.facts_topic, self.layout.facts_generation, self.busiest)
        return list(catalog.view.chain(key).segments)

    def commit(self, offset: int) -> None:
        """Set the group's offset of the busiest partition."""
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": self.settings.group_id})
        topic = self.settings.requests_topic
        (before,) = consumer.committed([TopicPartition(topic, self.busiest)], timeout=10)
        place = TopicPartition(topic, self.busiest, offset, before.metadata)
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()

    def delete_records(self, topic: str, before: int) -> None:
        """Let the busiest partition's records expire."""
        with AdminClient({"bootstrap.servers": self.kafka.bootstrap, "log_level": 4}) as admin:
            (future,) = admin.delete_records([TopicPartition(topic, self.busiest, before)]).values()
            assert future.result(30).low_watermark == before


@pytest.fixture
def deployment(
    kafka: KafkaCluster, settings: Settings, layout: TopicLayout, known: Registry, run_worker: Run
) -> Deployment:
    """A stopped one."""
    places = publish(settings, seed=41)
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(places))
    with RunningArchiver(settings, kafka.bootstrap, layout) as archiver:
        archiver.wait_until(lambda now: len(now.partitions) == 3 and all(one.lag == 0 for one in now.partitions))
    return Deployment(settings, layout, known, kafka, places)


def publish(settings: Settings, seed: int) -> list[tuple[int, int]]:
    """Requests, poison and writes."""
    assert settings.bootstrap is not None
    records: list[tuple[str, bytes | None]] = []
    for number, request in enumerate(harness.make_requests(COUNT, seed)):
        records.append((request.instance_id, harness.event(request)))
        if number % 20 == 7:
            records.append((request.instance_id, POISON[number // 20 % len(POISON)]))
        if number % 50 == 3:
            records.append((request.instance_id, b'{"type":"write"}'))
    return harness.send(settings.bootstrap, settings.requests_topic, records)


def assert_whole(reports: list[PartitionReport], requests: int = COUNT) -> None:
    poison, writes = requests // 20, requests // 50
    assert sum(report.audited.counts.consumed for report in reports) == requests + poison + writes
    assert sum(report.audited.facts for report in reports) == requests
    assert sum(report.audited.dead_letters for report in reports) == poison
    assert sum(report.audited.counts.ignored.get(Ignored.WRITE, 0) for report in reports) == writes
    assert [report.unchecked for report in reports] == [(), (), ()]


def test_a_stopped_deployment_passes(deployment: Deployment) -> None:
    reports = deployment.verify()
    assert_whole(reports)
    assert sum(report.audited.rows for report in reports) == COUNT
    assert sum(report.segments for report in reports) >= COUNT // 30


def test_a_running_deployment_passes_at_any_moment(
    deployment: Deployment, kafka: KafkaCluster, settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    with run_worker() as worker, RunningArchiver(settings, kafka.bootstrap, layout):
        places = publish(settings, seed=42)
        consumed = 0
        while consumed < 2 * (COUNT + COUNT // 20 + COUNT // 50):
            reports = deployment.verify()
            assert all(report.unchecked == () for report in reports)
            consumed = sum(report.audited.counts.consumed for report in reports)
        worker.wait_until(harness.caught_up(places))
    assert_whole(deployment.verify(), 2 * COUNT)


def test_the_command_line_says_what_it_checked_and_ends_with_1_at_a_difference(
    deployment: Deployment, settings: Settings, tmp_path: Path
) -> None:
    variables = {
        f"LITEHIT_{name.upper()}": str(getattr(settings, name))
        for name in ("requests_topic", "facts_topic", "dead_letters_topic", "group_id", "archive_group_id")
    }
    variables["LITEHIT_DEAD_LETTER_MAX_BYTES"] = "3000"
    options = ["verify", "--bootstrap", deployment.kafka.bootstrap, "--registry", str(tmp_path / "registry.yaml")]
    options += ["--store", settings.store]
    reports = deployment.verify()
    told = litehit(*options, settings=variables).stdout.decode().splitlines()
    assert told == [*(sentence for report in reports for sentence in sentences(report)), "no difference"]
    assert json.loads(litehit(*options, "--json", settings=variables).stdout) == document(reports, None)

    lost = deployment.segments()[-1]
    (tmp_path / "store" / lost.path).unlink()
    failed = litehit(*options, "--json", check=False, settings=variables)
    assert failed.returncode == 1
    difference = json.loads(failed.stdout)["difference"]
    assert f"segments end at {lost.base_offset}: the last ones are missing" in difference
    assert failed.stderr.decode().splitlines()[-1] == f"error: {difference}"


def flipped(record: harness.Read) -> harness.Read:
    value = bytearray(record.value or b"")
    value[len(value) // 2] ^= 1
    return replace(record, value=bytes(value))


def other_reason(record: harness.Read) -> harness.Read:
    headers = tuple((name, b"other" if name == REASON_HEADER else value) for name, value in record.headers)
    return replace(record, headers=headers)


def test_an_unchanged_copy_of_the_topics_passes(deployment: Deployment) -> None:
    deployment.forge("facts_topic", lambda records: records)
    deployment.forge("dead_letters_topic", lambda records: records)
    assert_whole(deployment.verify())


@pytest.mark.parametrize(
    ("which", "change", "words"),
    [
        ("facts_topic", lambda them: them[:30] + them[31:], "must have a fact on the topic, but it is missing"),
        ("facts_topic", lambda them: them[:-1], "must have a fact on the topic, but it is missing: nothing follows"),
        ("facts_topic", lambda them: them[:31] + them[30:], "stands there twice"),
        ("facts_topic", lambda them: [*them, them[-1]], "stands there twice"),
        ("facts_topic", lambda them: [*them, them[3]], "stands there twice"),
        ("facts_topic", lambda them: [*them[:30], flipped(them[30]), *them[31:]], "of the value differs"),
        ("facts_topic", lambda them: [*them[:30], them[31], them[30], *them[32:]], "must have a fact on the topic"),
        ("facts_topic", lambda them: [*them, replace(them[0], headers=())], f"the header {SOURCE_HEADER} is None"),
        ("dead_letters_topic", lambda them: them[1:], "must have a dead letter, but it is missing"),
        ("dead_letters_topic", lambda them: them[:-1], "must have a dead letter, but it is missing"),
        ("dead_letters_topic", lambda them: [*them, them[-1]], "stands there twice"),
        ("dead_letters_topic", lambda them: [other_reason(them[0]), *them[1:]], "the headers are"),
        ("dead_letters_topic", lambda them: [replace(them[0], value=b"["), *them[1:]], "value differs|value is"),
    ],
)
def test_a_forged_topic_is_found(
    deployment: Deployment, which: str, change: Callable[[list[harness.Read]], list[harness.Read]], words: str
) -> None:
    deployment.forge(which, change)
    with pytest.raises(Difference, match=words):
        deployment.verify()


def test_offsets_set_back_or_forward_are_found(deployment: Deployment) -> None:
    end = deployment.end
    deployment.commit(end - 50)
    with pytest.raises(Difference, match=f"consumed only the requests before {end - 50}"):
        deployment.verify()
    deployment.commit(end)
    deployment.verify()
    assert deployment.settings.bootstrap is not None
    request = harness.make_requests(1, seed=43)[0]
    producer = Producer({"bootstrap.servers": deployment.settings.bootstrap})
    producer.produce(deployment.settings.requests_topic, harness.event(request), partition=deployment.busiest)
    assert producer.flush(30) == 0
    deployment.verify()
    deployment.commit(end + 1)
    with pytest.raises(Difference, match=rf"/{end} must have a fact on the topic, but it is missing"):
        deployment.verify()


def test_segments_that_are_missing_or_altered_are_found(deployment: Deployment, tmp_path: Path) -> None:
    store = open_store(deployment.settings.store)
    first, second, *_, last = deployment.segments()

    def away(info: SegmentInfo, words: str) -> None:
        data = store.read(info.path)
        store.delete(info.path)
        with pytest.raises(Difference, match=words):
            deployment.verify()
        store.create(info.path, data)

    away(first, f"no segment covers offsets 0 to {first.end_offset}")
    away(second, f"no segment covers offsets {second.base_offset} to {second.end_offset}")
    away(last, "the last ones are missing")

    table = read_table(store, second.path)[1].slice(5)
    inside = describe(second.chain, table["fact_offset"][0].as_py(), second.end_offset, table)
    store.create(inside.path, encode(inside, table))
    deployment.verify()  # what others cover is what a merge leaves for a moment, and does not count
    store.delete(inside.path)

    path = tmp_path / "store" / second.path
    data = path.read_bytes()
    for place in range(5, len(data), len(data) // 20):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises((Difference, ArchiveError), match=second.path):
            deployment.verify()
    path.write_bytes(data)
    deployment.verify()


def test_what_has_expired_is_told_and_the_rest_is_checked(
    deployment: Deployment, run_worker: Run, tmp_path: Path
) -> None:
    settings, busiest = deployment.settings, deployment.busiest
    more = publish(settings, seed=44)
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(more))
    deployment.places += more
    # Of the facts on the topic only the last ones are left; of the archive, which stopped before, the first ones.
    deployment.delete_records(settings.facts_topic, 60)
    deployment.delete_records(settings.dead_letters_topic, 1)
    report = deployment.verify()[busiest]
    assert report.audited.counts.facts == report.audited.facts + 59 > report.audited.rows > 59
    assert report.unchecked == ("1 dead letter, expired from the topic",)

    # The earliest snapshot that is not behind the first request is what helps.
    deployment.delete_records(settings.requests_topic, 40)
    snapshots = (tmp_path / "store" / "snapshots").rglob(f"{busiest:05d}/*.safetensors")
    start = min(offset for offset in (int(path.stem) for path in snapshots) if offset >= 40)
    report = deployment.verify()[busiest]
    assert (report.start, report.consumed) == (start, deployment.end)
    assert report.audited.counts.consumed == deployment.end - start
    assert f"what the requests before {start} became is not recomputed" in report.unchecked[0]
    assert "come from requests that are not recomputed" in report.unchecked[-1]

    for snapshot in (tmp_path / "store" / "snapshots").rglob("*.safetensors"):
        snapshot.unlink()
    report = deployment.verify()[busiest]
    assert (report.audited.counts.consumed, report.audited.facts) == (0, 0)
    assert "nothing is recomputed" in report.unchecked[0]
    assert "the requests before offset 40 have expired" in report.unchecked[0]


def test_what_follows_a_snapshot_is_held_to_it(deployment: Deployment, run_worker: Run) -> None:
    settings = deployment.settings
    more = publish(settings, seed=45)
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(more))
    deployment.delete_records(settings.requests_topic, 40)
    deployment.forge("facts_topic", lambda them: [*them[:-9], flipped(them[-9]), *them[-8:]])
    with pytest.raises(Difference, match="of the value differs"):
        deployment.verify()


def test_a_transaction_that_is_open_is_waited_for(deployment: Deployment) -> None:
    settings = deployment.settings
    producer = Producer({"bootstrap.servers": deployment.kafka.bootstrap, "transactional.id": settings.facts_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(settings.facts_topic, b"of a lane that died", partition=deployment.busiest)
    assert producer.flush(30) == 0
    with deployment.open() as verification:
        producer.abort_transaction(30)
        assert_whole(list(verification.partitions()))
    producer.close()
