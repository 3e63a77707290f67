"""What tests of lanes share: requests, their facts by a straight replay, a worker in a thread, topics as read."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from prometheus_client import CollectorRegistry

from litehit.instance import InstanceEngine
from litehit.registry import Registry
from litehit.request import Request, RequestBatch
from schemas.dead_letter import REASON_HEADER, SOURCE_HEADER
from service import formats
from service.archive.open_store import open_store
from service.archive.store import Store
from service.errors import BatchAborted
from service.format_names import FormatName
from service.lanes import reading
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.read_records import ReadRecords
from service.lanes.status import LanesStatus, LaneState, LaneStatus
from service.lanes.transaction import MicroBatch
from service.lanes.worker import LanesWorker
from service.messages import source_record
from service.metrics import LanesMetrics
from service.records import SourceRecord, SourceRecords
from service.settings import Settings
from service.topics import TopicLayout

BLOCK_TOKENS = 4
REGISTRY = """
groups:
  - {name: plain, capacity_gb: [1]}
  - {name: aging, ttl_seconds: 30, capacity_gb: [1]}
instances:
  - {instance_id: "chat-*", group: plain, block_size_tokens: 4, block_bytes: 1024}
  - {instance_id: "agent-*", group: aging, block_size_tokens: 8, trace_block_size_tokens: 4, block_bytes: 2048}
"""
INSTANCES = ("chat-a", "chat-b", "chat-c", "agent-a", "agent-b")


def registry(folder: Path) -> Registry:
    """The registry of these tests, by way of its file."""
    path = folder / "registry.yaml"
    path.write_text(REGISTRY, encoding="utf-8")
    return Registry.load(path)


def make_requests(count: int, seed: int, instances: Sequence[str] = INSTANCES) -> list[Request]:
    """Sessions that grow and fork, over several instances; times mostly ascend."""
    random = np.random.default_rng(seed)
    requests = []
    for number in range(count):
        session = int(random.integers(0, 12))
        length = int(random.integers(0, 30))
        fork = int(random.integers(0, length + 1)) if random.random() < 0.3 else length
        keys = [session * 1000 + position for position in range(fork)]
        keys += [10**6 * (number + 1) + position for position in range(length - fork)]
        requests.append(
            Request(
                instance_id=str(random.choice(instances)),
                trace_id=f"trace-{number}",
                timestamp_ns=number * 10**8 - int(random.integers(0, 5 * 10**8)),
                block_keys=np.array(keys, np.int64),
                input_token_len=length * BLOCK_TOKENS + int(random.integers(0, BLOCK_TOKENS)) if length else 1,
            )
        )
    return requests


def event(request: Request, **changes: Any) -> bytes:
    """A request as its event on the topic."""
    fields = {
        "type": "request",
        "instance_id": request.instance_id,
        "trace_id": request.trace_id,
        "timestamp_ns": request.timestamp_ns,
        "block_keys": request.block_keys.tolist(),
        "input_token_len": request.input_token_len,
    }
    return json.dumps(fields | changes).encode()


def straight_facts(requests: Iterable[Request], known: Registry) -> dict[str, list[bytes]]:
    """The facts of each instance, in order, by one engine call a instance."""
    by_instance: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        by_instance[request.instance_id].append(request)
    return {
        instance_id: [
            fact.to_json()
            for fact in InstanceEngine(known.resolve(instance_id)).process(RequestBatch.from_requests(own))
        ]
        for instance_id, own in by_instance.items()
    }


@dataclass(frozen=True)
class Read:
    """A record as a read_committed reader sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def header(self, name: str) -> str:
        return (dict(self.headers)[name] or b"").decode()

    @property
    def source(self) -> str:
        return self.header(SOURCE_HEADER)

    @property
    def reason(self) -> str:
        return self.header(REASON_HEADER)


def read_topic(bootstrap: str, topic: str, partitions: int, seconds: float = 30) -> list[Read]:
    """Everything a read_committed reader sees, partition by partition, in offset order."""
    return [
        Read(record.partition, record.offset, record.key, record.value, record.headers)
        for record in read_records(bootstrap, topic, partitions, seconds)
    ]


def read_records(bootstrap: str, topic: str, partitions: int, seconds: float = 30) -> list[SourceRecord]:
    """`read_topic`, as a lane is given records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 4,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        records: list[SourceRecord] = []
        ended: set[int | None] = set()
        deadline = time.monotonic() + seconds
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"read {len(records)} records of {topic}; ended: {ended}"
            for message in consumer.consume(500, 0.1):
                error = message.error()
                if error is None:
                    records.append(source_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise AssertionError(error)
        return sorted(records, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


def read(records: Iterable[SourceRecord]) -> ReadRecords:
    """What a worker reads in request events."""
    listed = list(records)
    columns = SourceRecords.of(listed) if listed else SourceRecords("", 0, (), (), (), (), None)
    return reading.read_records(formats.of_topic(FormatName.NATIVE), columns)


def send(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[str | bytes | None, bytes | None]],
    headers: Iterable[dict[str, str]] = itertools.repeat({}),
    **properties: Any,
) -> list[tuple[int, int]]:
    """Produce keyed records in order, each with its headers; where each of them stands: (partition, offset)."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "message.max.bytes": 2**21,
            "log_level": 4,
            **properties,
        }
    )
    places: dict[int, tuple[int, int]] = {}

    def note(number: int) -> Callable[[KafkaError | None, Any], None]:
        def delivered(error: KafkaError | None, message: Any) -> None:
            assert error is None, error
            places[number] = message.partition(), message.offset()

        return delivered

    count = 0
    for (key, value), own in zip(records, headers, strict=False):
        producer.produce(topic, value=value, key=key, on_delivery=note(count), headers=dict(own))
        count += 1
    assert producer.flush(150) == 0  # a broker may be away meanwhile
    producer.close()
    return [places[number] for number in range(count)]


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Ask again until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def abort_every_third(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Abort every third transaction, after its records were produced; tells how many were tried."""
    commits = 0
    send_offsets = ExactlyOnce._send_offsets

    def sometimes(transaction: ExactlyOnce, batch: MicroBatch) -> None:
        nonlocal commits
        commits += 1
        if commits % 3 == 0:
            raise BatchAborted("planted")
        send_offsets(transaction, batch)

    monkeypatch.setattr(ExactlyOnce, "_send_offsets", sometimes)
    return lambda: commits


class Hold:
    """A worker's `hold`: whether it holds is as the test says, and the test may wait until it was asked.

    Attributes:
        held: set while the worker is to hold.
    """

    def __init__(self) -> None:
        self.held = threading.Event()
        self._rounds = threading.Semaphore(0)

    def __call__(self) -> bool:
        self._rounds.release()
        return self.held.is_set()

    def go_round(self, times: int) -> None:
        """Wait until the worker has asked so many times."""
        while self._rounds.acquire(blocking=False):
            pass
        for _ in range(times):
            assert self._rounds.acquire(timeout=10)


class RunningWorker:
    """A worker in a thread, stopped at the end of the `with` block."""

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        layout: TopicLayout,
        known: Registry,
        store: Store | None = None,
        **options: Any,
    ) -> None:
        self.known = known
        self.metrics_registry = CollectorRegistry()
        metrics = LanesMetrics(self.metrics_registry)
        kept = open_store(settings.store) if store is None else store
        self.worker = LanesWorker(settings, bootstrap, layout, known, metrics, kept, **options)
        metrics.watch(self.worker.status)
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.worker.run(self._stop)
        except BaseException as error:
            self.error = error

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics_registry.get_sample_value(name, labels) or 0.0

    def wait_until(self, condition: Callable[[LanesStatus], bool], seconds: float = 60) -> LanesStatus:
        """The first status that meets a condition."""
        status = self.worker.status()

        def met() -> bool:
            nonlocal status
            status = self.worker.status()
            assert self._thread.is_alive(), f"the worker ended: {self.error!r}"
            return condition(status)

        try:
            wait_for(met, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error} at {status}") from error
        return status

    def wait_for_end(self, seconds: float = 60) -> BaseException | None:
        """Why the worker ended by itself."""
        self._thread.join(seconds)
        assert not self._thread.is_alive()
        return self.error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None and self.error is not None:
            raise self.error


def caught_up(places: Sequence[tuple[int, int]]) -> Callable[[LanesStatus], bool]:
    """All lanes run, and these records are processed."""
    wanted: defaultdict[int, int] = defaultdict(int)
    for partition, offset in places:
        wanted[partition] = max(wanted[partition], offset + 1)

    def reached(status: LanesStatus) -> bool:
        lanes = {lane.partition: lane for lane in status.lanes}
        return bool(lanes) and all(
            partition in lanes and _is_at(lanes[partition], offset) for partition, offset in wanted.items()
        )

    return reached


def _is_at(lane: LaneStatus, offset: int) -> bool:
    assert lane.error is None, lane.error
    return lane.state is LaneState.RUNNING and lane.next_offset is not None and lane.next_offset >= offset
