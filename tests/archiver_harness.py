"""What tests of the archiver share: facts in the topic, an archiver in a thread, the store as read."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from schemas.dead_letter import SOURCE_HEADER
from service.archive.archived_facts import ArchivedFacts
from service.archive.archiver import Archiver
from service.archive.catalog import Catalog
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, SegmentInfo, read_table
from service.archive.status import ArchiveStatus, PartitionStatus
from service.metrics import ArchiveMetrics
from service.settings import Settings
from service.topics import TopicLayout
from tests.archive_facts import made_fact


class Listener:
    """Keeps what it hears as an index would."""

    def __init__(self) -> None:
        self.segments: defaultdict[int, list[SegmentInfo]] = defaultdict(list)
        self.tails: defaultdict[int, list[int]] = defaultdict(list)

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        self.tails[chain.partition] += rows.fact_offsets.tolist()

    def published(self, info: SegmentInfo) -> None:
        tail = self.tails[info.chain.partition]
        self.segments[info.chain.partition].append(info)
        self.tails[info.chain.partition] = [offset for offset in tail if offset >= info.end_offset]

    def tail_dropped(self, chain: ChainKey) -> None:
        self.tails[chain.partition] = []


class FactsTopic:
    """Writes facts as lanes do; each partition's offsets follow from what was sent."""

    def __init__(self, settings: Settings, bootstrap: str) -> None:
        self._topic = settings.facts_topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2**21, "log_level": 4})
        self._next: defaultdict[int, int] = defaultdict(int)

    def send(self, partition: int, count: int) -> None:
        """The made facts of the next offsets."""
        for offset in range(self._next[partition], self._next[partition] + count):
            self._produce(partition, made_fact(offset).to_json(), offset)
        self._flush(partition, count)

    def send_value(self, partition: int, value: bytes, count: int = 1) -> None:
        """Records of this value."""
        for offset in range(self._next[partition], self._next[partition] + count):
            self._produce(partition, value, offset)
        self._flush(partition, count)

    def _produce(self, partition: int, value: bytes, offset: int) -> None:
        source = f"litehit.requests/{partition}/{2 * offset}".encode()
        self._producer.produce(self._topic, value, b"key", partition, headers=[(SOURCE_HEADER, source)])
        self._producer.poll(0)

    def _flush(self, partition: int, count: int) -> None:
        assert self._producer.flush(30) == 0
        self._next[partition] += count


class RunningArchiver:
    """An archiver in a thread, stopped at the end of the `with` block."""

    def __init__(self, settings: Settings, bootstrap: str, layout: TopicLayout, **options: Any) -> None:
        self.listener = Listener()
        self.metrics_registry = CollectorRegistry()
        metrics = ArchiveMetrics(self.metrics_registry)
        store = options.pop("store", None) or open_store(settings.store)
        self.archiver = Archiver(
            settings, bootstrap, layout.facts_generation, layout.partitions, store, metrics, self.listener, **options
        )
        metrics.watch(self.archiver.status)
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.archiver.run(self._stop)
        except BaseException as error:
            self.error = error

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics_registry.get_sample_value(f"litehit_archive_{name}", labels) or 0.0

    def wait_until(self, condition: Callable[[ArchiveStatus], bool], seconds: float = 60) -> ArchiveStatus:
        """The first status that meets a condition."""
        deadline = time.monotonic() + seconds
        while not condition(status := self.archiver.status()):
            assert self._thread.is_alive(), f"the archiver ended: {self.error!r}"
            assert time.monotonic() < deadline, status
            time.sleep(0.01)
        return status

    def wait_for(self, partition: int, condition: Callable[[PartitionStatus], bool]) -> PartitionStatus:
        """The first status of a partition that meets a condition."""
        status = self.wait_until(lambda now: bool(now.partitions) and condition(now.partitions[partition]))
        return status.partitions[partition]

    def wait_consumed(self, offsets: Iterable[int]) -> ArchiveStatus:
        """The first status in which each partition is consumed up to its offset here."""
        wanted = list(offsets)
        return self.wait_until(
            lambda now: [one.next_offset for one in now.partitions] == wanted,
        )

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None and self.error is not None:
            raise self.error


def archived(store: str | Path, generation: str) -> dict[int, list[int]]:
    """The offsets in the store by partition; each chain must be whole, and its facts the made ones."""
    opened = open_store(str(store), for_writing=False)
    catalog = Catalog(opened)
    catalog.refresh()
    assert catalog.view.faults == ()
    offsets: defaultdict[int, list[int]] = defaultdict(list)
    for info in catalog.view.segments:
        assert info.chain.generation == generation
        facts = ArchivedFacts.from_table(read_table(opened, info.path)[1])
        assert list(facts.facts) == [made_fact(offset) for offset in facts.fact_offsets.tolist()]
        assert facts.source_offsets.tolist() == [2 * offset for offset in facts.fact_offsets.tolist()]
        offsets[info.chain.partition] += facts.fact_offsets.tolist()
    return dict(offsets)
