"""A deployment under test: topics of its own, roles as processes, and what an undisturbed run of it leaves behind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaException, TopicPartition

from litehit.registry import Registry
from litehit.request import Request
from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog
from service.archive.open_store import open_store
from service.archive.segment import read_table
from service.lanes.lane import Lane, LaneTargets
from service.records import Headers, OutputRecord, SourceRecord
from service.settings import Role, Settings
from service.topics import prepare_topics
from tests import lanes_harness as harness
from tests.cli_harness import RunningService

SHORT_TIMEOUTS = {"session.timeout.ms": "3000", "heartbeat.interval.ms": "500"}
"""The group notices a dead worker in three seconds instead of 45, so that tests of deaths end soon."""

Content: TypeAlias = tuple[bytes | None, bytes | None, Headers, int | None]
"""Key, value, headers and time of an output record: all of it but the offset, which aborted transactions move."""


@dataclass(frozen=True)
class Outputs:
    """What the records of one partition become.

    Attributes:
        facts, dead_letters: in order.
    """

    facts: list[Content]
    dead_letters: list[Content]


class Deployment:
    """Names that no other test uses, on a running cluster.

    Args:
        bootstrap: the cluster.
        folder: registry file and store go below it.
        registry_text: the registry file.
        changes: settings.

    Attributes:
        settings: of every role.
        layout: the topics, which are made.
        registry: what the file says.
    """

    def __init__(self, bootstrap: str, folder: Path, registry_text: str = harness.REGISTRY, **changes: Any) -> None:
        name = uuid.uuid4().hex[:8]
        path = folder / "registry.yaml"
        path.write_text(registry_text, encoding="utf-8")
        chosen: dict[str, Any] = {
            "bootstrap": bootstrap,
            "registry": path,
            "store": str(folder / "store"),
            "requests_topic": f"requests-{name}",
            "facts_topic": f"facts-{name}",
            "dead_letters_topic": f"dead-letters-{name}",
            "group_id": f"lanes-{name}",
            "archive_group_id": f"archive-{name}",
            "transactional_id": f"lanes-{name}",
            "create_topics": True,
            "partitions": 4,
            "kafka": SHORT_TIMEOUTS,
        }
        self.settings = Settings(**chosen | changes)
        self.layout = prepare_topics(self.settings, bootstrap)
        self.registry = Registry.load(path)
        self._services: list[RunningService] = []

    @property
    def bootstrap(self) -> str:
        """Address of the cluster."""
        assert self.settings.bootstrap is not None
        return self.settings.bootstrap

    def serve(self, role: Role, number: int = 0, *, module: str = "service.cli", **environment: str) -> RunningService:
        """Start a role in a process of its own; lanes of different numbers have different transactional ids."""
        settings = self.environment(number) | environment
        service = RunningService("--roles", role.value, settings=settings, module=module)
        self._services.append(service)
        return service

    def environment(self, number: int) -> dict[str, str]:
        """The settings as variables."""
        given = self.settings.model_dump(mode="json", include=self.settings.model_fields_set)
        given["transactional_id"] = f"{self.settings.transactional_id}-{number}"
        return {
            f"LITEHIT_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
            for name, value in given.items()
        }

    def worker(self, number: int = 0, **options: Any) -> harness.RunningWorker:
        """A lanes worker in a thread of the test's process."""
        changes = {"transactional_id": f"{self.settings.transactional_id}-{number}"}
        settings = self.settings.model_copy(update=changes)
        return harness.RunningWorker(settings, self.bootstrap, self.layout, self.registry, **options)

    def close(self) -> None:
        """End every process that still runs."""
        for service in self._services:
            service.close()

    def publish(self, requests: Iterable[Request], **properties: Any) -> list[tuple[int, int]]:
        """Send requests as a tap does; partition and offset of each."""
        records = [(request.instance_id, harness.event(request)) for request in requests]
        return harness.send(self.bootstrap, self.settings.requests_topic, records, **properties)

    def requests(self) -> list[SourceRecord]:
        """The requests topic as lanes read it."""
        return harness.read_records(self.bootstrap, self.settings.requests_topic, self.layout.partitions)

    def committed(self) -> int:
        """The group's committed offsets, summed; those of a transaction that is not decided do not count."""
        asked = [TopicPartition(self.settings.requests_topic, number) for number in range(self.layout.partitions)]
        properties = {"group.id": self.settings.group_id, "isolation.level": "read_uncommitted"}
        client = Consumer({"bootstrap.servers": self.bootstrap, "log_level": 3, **properties})
        answers = client.committed(asked, timeout=30)
        client.close()
        return sum(max(0, answer.offset) for answer in answers)

    def await_processed(self, places: Iterable[tuple[int, int]], seconds: float = 60) -> None:
        """Wait until the group has committed past these partitions and offsets."""
        wanted: dict[int, int] = {}
        for partition, offset in places:
            wanted[partition] = max(offset + 1, wanted.get(partition, 0))
        asked = [TopicPartition(self.settings.requests_topic, partition) for partition in wanted]
        properties = {"group.id": self.settings.group_id, "isolation.level": "read_committed"}
        client = Consumer({"bootstrap.servers": self.bootstrap, "log_level": 3, **properties})
        seen: dict[int, int] = {}

        def reached() -> bool:
            try:
                answers = client.committed(asked, timeout=5)
            except KafkaException as unanswered:
                if not unanswered.args[0].retriable():
                    raise
                return False
            seen.update((answer.partition, answer.offset) for answer in answers if answer.error is None)
            return all(seen.get(partition, -1) >= offset for partition, offset in wanted.items())

        try:
            harness.wait_for(reached, seconds)
        except AssertionError:
            ends = [(service.process.poll(), service.saw("") or service.events[-3:]) for service in self._services]
            raise AssertionError(f"committed {seen} of {wanted}; processes: {ends}") from None
        finally:
            client.close()

    def assert_exact(self, *, archived: bool = False) -> dict[int, Outputs]:
        """Topics, and the store if asked for, hold byte for byte what an undisturbed run leaves, which is returned."""
        requests = self.requests()
        facts = harness.read_records(self.bootstrap, self.settings.facts_topic, self.layout.partitions)
        letters = harness.read_records(self.bootstrap, self.settings.dead_letters_topic, self.layout.partitions)
        outputs = {}
        for partition in range(self.layout.partitions):
            expected = outputs[partition] = self._undisturbed(partition, _of(partition, requests))
            found = [_content(record) for record in _of(partition, facts)]
            assert_same(f"facts of partition {partition}", found, expected.facts)
            found = [_content(record) for record in _of(partition, letters)]
            assert_same(f"dead letters of partition {partition}", found, expected.dead_letters)
        if archived:
            self._assert_archived(facts)
        return outputs

    def _undisturbed(self, partition: int, requests: Sequence[SourceRecord]) -> Outputs:
        """A lane fed with everything at once."""
        settings = self.settings
        targets = LaneTargets(settings.facts_topic, settings.dead_letters_topic, settings.dead_letter_max_bytes)
        lane = Lane(partition, self.registry, targets)
        output = lane.process(harness.read(requests))
        return Outputs([_content(record) for record in output.facts], [_content(one) for one in output.dead_letters])

    def _assert_archived(self, facts: Sequence[SourceRecord]) -> None:
        """The segments are one chain a partition over the topic's facts, each fact once."""
        store = open_store(self.settings.store, for_writing=False)
        catalog = Catalog(store, self.settings.facts_topic)
        catalog.refresh()
        assert catalog.view.faults == ()
        rows: dict[int, list[tuple[int, str, bytes]]] = {}
        for info in catalog.view.segments:
            assert info.chain.generation == self.layout.facts_generation
            segment = ArchivedFacts.from_table(read_table(store, info.path)[1])
            places = zip(segment.fact_offsets.tolist(), segment.source_offsets.tolist(), strict=True)
            rows.setdefault(info.chain.partition, []).extend(
                (offset, f"{self.settings.requests_topic}/{info.chain.partition}/{source}", fact.to_json())
                for (offset, source), fact in zip(places, segment.facts, strict=True)
            )
        for partition in range(self.layout.partitions):
            expected = [
                (record.offset, (dict(record.headers)["litehit-source"] or b"").decode(), record.value)
                for record in _of(partition, facts)
            ]
            assert_same(f"segments of partition {partition}", rows.get(partition, []), expected)


def assert_same(what: str, found: Sequence[object], expected: Sequence[object]) -> None:
    """Equal, or the first difference is told; pytest would compare thousands of lines."""
    for place, (one, other) in enumerate(zip(found, expected, strict=False)):
        assert one == other, f"{what} differ from an undisturbed run's at {place} of {len(expected)}"
    assert len(found) == len(expected), f"{what}: {len(found)}, an undisturbed run leaves {len(expected)}"


def places_of(records: Iterable[SourceRecord]) -> list[tuple[int, int]]:
    """Partition and offset of each record."""
    return [(record.partition, record.offset) for record in records]


def _of(partition: int, records: Iterable[SourceRecord]) -> list[SourceRecord]:
    return [record for record in records if record.partition == partition]


def _content(record: SourceRecord | OutputRecord) -> Content:
    return record.key, record.value, record.headers, record.timestamp_ms
