"""The way from the requests topic to the facts topic and on to an answer, on a real Apache Kafka on this machine.

Run: `python -m benchmarks.pipeline [--requests N] [--rounds N] [--share X] [--minutes M] [--json]`; it needs Java and
Maven.
All rows are measured in one run, in turns, over the same records, each in a process of its own:

- floor: a bare consumer that leaves the values untouched, up to the last full batch: that a topic ends it learns by
  waiting;
- decode: the same, each value through the pydantic model, its keys to an array;
- lanes: the whole worker with transactions; at_least_once: the same worker without;
- binary_floor, binary_lanes: floor and lanes over the same requests as protobuf messages;
- freshness: from a record's publishing to a /query that counts it, at half the lanes' rate (`--share`), the lanes in
  one process and the archive with the API in another, once these have run for so long that what is compiled at first
  use is;
- memory: the resident sizes of both over the time of the freshness row (`--minutes` makes it longer), and the slopes of
  their second half. The load repeats itself, so that the lanes have no new blocks to keep; the index grows with facts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec

import numpy as np
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from benchmarks.http_clients import FastConnection
from benchmarks.sidecar import Sidecar, serving
from litehit.registry import Registry
from litehit.request import Request
from litehit.workload import RequestColumns, WorkloadSpec, generate
from schemas.request import EVENT
from service.archive.open_store import open_store
from service.background import in_background
from service.event_json import event_json
from service.event_protobuf import protobuf_event
from service.format_names import FormatName
from service.garbage import collect_seldom
from service.heap import give_back_early
from service.lanes.status import LaneState
from service.lanes.worker import LanesWorker
from service.metrics import LanesMetrics
from service.settings import ProcessingGuarantee, Settings
from service.topics import prepare_topics
from tests.kafka.broker import KafkaCluster, kafka_jars

Arguments = ParamSpec("Arguments")

PARTITIONS = 4
PROBE = "probe"
BINARY_TOPIC = "binary.requests"
_CONSUME_RECORDS = 500
_PROBE_SECONDS = 0.1  # between two probes
_LOOK_SECONDS = 0.03  # between two looks at /query, which would else be a load of their own
_WARM_SECONDS = 60.0  # before a probe counts: the broker compiles what this load runs, on the same processors
_LOST_SECONDS = 120.0  # a probe that is not counted by then never will be
_WARM_ROUNDS = 3  # a broker that has just started compiles its own code meanwhile, on the machine's processors
# Else what the broker has appended is written back by the operating system, each half minute at once: a gigabyte at
# such rates, during which a broker that shares its disk with all the rest takes nothing for seconds.
_WRITE_BACK = {"log.flush.interval.ms": 500, "log.flush.scheduler.interval.ms": 500}
# Of a partition; the rates take less, and ten minutes of the load would be 40 GB.
_KEEP = {"log.retention.bytes": 2**30, "log.segment.bytes": 2**27, "log.retention.check.interval.ms": 5_000}
BINARY_OUTPUT = {"facts_topic": "binary.facts", "dead_letters_topic": "binary.dead-letters"}
REGISTRY = """
groups: [{name: all, capacity_gb: [8, 64]}]
instances: [{instance_id: "*", group: all, block_size_tokens: 16, block_bytes: 1048576}]
"""

Row = dict[str, float]


def workload(requests: int) -> RequestColumns:
    """Sessions that stay on their instance, 500 keys a request in the mean, about a quarter of the blocks new."""
    return generate(
        WorkloadSpec(
            requests=requests,
            instances=tuple(f"model-{i}" for i in range(20)),
            block_size_tokens=16,
            system_prompts=64,
            system_prompt_tokens=1_500,
            mean_turns=3.2,
            turn_tokens=2_000,
        )
    )


def produce(
    bootstrap: str, topic: str, trace: RequestColumns, encode: Callable[[Request], bytes] = event_json
) -> float:
    """Publish a whole trace; returns the bytes of its values."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 20, "log_level": 4}
    )
    size = 0
    for request in trace.requests():
        value = encode(request)
        size += len(value)
        while True:
            try:
                producer.produce(topic, value=value, key=request.instance_id.encode())
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    producer.close()
    return size


def alone(measure: Callable[Arguments, float], *arguments: Arguments.args, **named: Arguments.kwargs) -> float:
    """Measure in a process of its own, in which nothing is left of what was measured before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_set_up) as process:
        return process.submit(measure, *arguments, **named).result()


def _set_up() -> None:
    """What `litehit serve` does for its process, for every row."""
    give_back_early()
    collect_seldom()


def consume_all(bootstrap: str, topic: str, *, decode: bool = False) -> float:
    """Records a second of a bare consumer that reads a topic once, up to its last full batch."""
    use = EVENT.validate_json if decode else len
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bare",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 10,
            "queued.max.messages.kbytes": 65536,
            "log_level": 4,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    ended: set[int | None] = set()
    rate = Rate()
    while len(ended) < PARTITIONS:
        messages = consumer.consume(_CONSUME_RECORDS, 0.05)
        if messages:
            rate.begin(time.perf_counter())
        records = 0
        for message in messages:
            error = message.error()
            if error is None:
                use(message.value() or b"")
                records += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise RuntimeError(error.str())
        rate.note(records, counts=len(messages) == _CONSUME_RECORDS)  # for more it waited in vain
    consumer.close()
    return rate.per_second()


def run_lanes(settings: Settings, bootstrap: str, registry: Path, total: int) -> float:
    """Records a second of a worker that starts cold and reads the whole topic.

    The last two batches are left out: nothing is processed beside them.
    """
    layout = prepare_topics(settings, bootstrap)
    stop = threading.Event()
    metrics = _LanesRate(total, stop)
    worker = LanesWorker(settings, bootstrap, layout, Registry.load(registry), metrics, open_store(settings.store))
    in_background("lanes-watch", partial(_stop_with_lane, worker, stop))
    worker.run(stop)
    return metrics.rate.per_second(leave_out=2)


def _stop_with_lane(worker: LanesWorker, stop: threading.Event) -> None:
    """Stop a worker one of whose lanes does not work any more."""
    while not stop.wait(1.0):
        if any(lane.state is LaneState.STOPPED for lane in worker.status().lanes):
            stop.set()


class Rate:
    """Records a second, from when the first ones had come in to when the last batch that counts was through."""

    def __init__(self) -> None:
        self.records = 0
        self._began: float | None = None
        self._marks: list[tuple[float, int]] = []

    def begin(self, at: float) -> None:
        """The first records have come in; of several calls the first counts."""
        if self._began is None:
            self._began = at

    def note(self, records: int, *, counts: bool = True) -> None:
        """So many records are through."""
        self.records += records
        if counts:
            self._marks.append((time.perf_counter(), self.records))

    def per_second(self, leave_out: int = 0) -> float:
        """Of all but so many of the last batches that count.

        Raises:
            RuntimeError: there are no more batches than those.
        """
        if self._began is None or len(self._marks) <= leave_out:
            raise RuntimeError(f"{self.records} records are too few to tell a rate, or a lane stopped")
        end, records = self._marks[-1 - leave_out]
        return records / (end - self._began)


class _LanesRate(LanesMetrics):
    """Stops a worker that has handed over all there is."""

    def __init__(self, total: int, stop: threading.Event) -> None:
        super().__init__(CollectorRegistry())
        self.rate = Rate()
        self._total = total
        self._stop = stop

    def batch(self, records: int, seconds: float) -> None:
        super().batch(records, seconds)
        self.rate.begin(time.perf_counter() - seconds)
        self.rate.note(records)
        if self.rate.records >= self._total:
            self._stop.set()


@contextmanager
def deployed(bootstrap: str, registry: Path, store: Path, group: str) -> Iterator[dict[str, Sidecar]]:
    """The processes that one would run on Kafka: the lanes in one, the archive and the API in another, ready."""
    settings = {"LITEHIT_GROUP_ID": group, "LITEHIT_TRANSACTIONAL_ID": group, **_topics(group)}
    broker = ("--bootstrap", bootstrap)
    with (
        serving(store, "lanes", *broker, "--registry", str(registry), settings=settings) as lanes,
        serving(store, "archive,api", *broker, settings=settings) as sidecar,
    ):
        yield {"lanes": lanes, "sidecar": sidecar}


def _topics(group: str) -> dict[str, str]:
    return {
        "LITEHIT_REQUESTS_TOPIC": f"{group}.requests",
        "LITEHIT_FACTS_TOPIC": f"{group}.facts",
        "LITEHIT_DEAD_LETTERS_TOPIC": f"{group}.dead-letters",
        "LITEHIT_CREATE_TOPICS": "true",
        "LITEHIT_REPLICATION_FACTOR": "1",
    }


def freshness(bootstrap: str, services: Mapping[str, Sidecar], topic: str, rate: float, minutes: float) -> Row:
    """Publish at a steady rate; among that a probe each `_PROBE_SECONDS`, which is timed until /query counts it.

    Probes are as many in a second in which nothing goes on as in any other. Those of the first `_WARM_SECONDS` are not
    counted, and these are added to the time.
    """
    done = threading.Event()
    trace = workload(20_000)
    values = [(request.instance_id.encode(), event_json(request)) for request in trace.requests()]
    producer = Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 10, "log_level": 4}
    )
    sent = 0
    published: list[float] = []  # when each probe was

    def load() -> None:
        nonlocal sent
        begin = time.perf_counter()
        while not done.is_set():
            passed = time.perf_counter() - begin
            while sent < int(passed * rate):
                key, value = values[sent % len(values)]
                producer.produce(topic, value=value, key=key)
                sent += 1
            while len(published) < passed / _PROBE_SECONDS:
                probe = {"type": "request", "block_keys": [len(published)], "trace_id": f"probe-{len(published)}"}
                published.append(time.perf_counter())
                producer.produce(topic, value=json.dumps(probe).encode(), key=PROBE.encode())
            producer.poll(0)
            done.wait(0.005)

    thread = threading.Thread(target=load)
    seconds: list[float] = []
    memory: list[tuple[float, dict[str, float]]] = []
    begin = time.perf_counter()
    warm = begin + _WARM_SECONDS
    end = warm + 60 * minutes
    counted = 0
    thread.start()
    try:
        with closing(FastConnection(services["sidecar"].url)) as client:
            # Those of the last seconds are waited for, or only the quick ones of them would be in the figures.
            while (now := time.perf_counter()) < end or counted < bisect_left(published, end):
                before, counted = counted, _counted(client)
                now = time.perf_counter()
                seconds += [now - at for at in published[before:counted] if warm <= at < end]
                if counted < len(published) and now - published[counted] > _LOST_SECONDS:
                    raise RuntimeError(f"probe {counted} was not counted within {_LOST_SECONDS:.0f} s")
                if now - begin >= len(memory):  # each second
                    sizes = {name: one.memory_mb("VmRSS") for name, one in services.items()}
                    memory.append((now - begin, sizes))
                time.sleep(_LOOK_SECONDS)
    finally:
        done.set()
        thread.join()
        producer.close()
    seconds.sort()
    return {
        "freshness_probes": len(seconds),
        "freshness_p50_s": statistics.median(seconds),
        "freshness_p99_s": seconds[int(len(seconds) * 0.99)],
        "freshness_max_s": seconds[-1],
        "freshness_records_per_s": sent / (time.perf_counter() - begin),
        **{f"{name}_rss_mb": size for name, size in memory[-1][1].items()},
        **_slopes(memory[len(memory) // 2 :]),  # the first half fills caches and buffers
        "rss_minutes": (time.perf_counter() - begin) / 60,
    }


def _slopes(memory: Sequence[tuple[float, Mapping[str, float]]]) -> Row:
    """What each process gains in a minute, given seconds and sizes in MB."""
    minutes = [at / 60 for at, _ in memory]
    return {
        f"{name}_rss_slope_mb_per_minute": float(np.polyfit(minutes, [sizes[name] for _, sizes in memory], 1)[0])
        for name in memory[0][1]
    }


def _counted(client: FastConnection) -> int:
    status, body = client.get(f"/query?capacity_gb=8&instance_id={PROBE}")
    return int(json.loads(body)["total"]["requests"]) if status == 200 else 0


def measure_rates(base: Settings, binary: Settings, bootstrap: str, registry: Path, total: int, round_name: str) -> Row:
    """Records a second of each row but the freshness ones, in turn."""

    def lanes(name: str, settings: Settings, guarantee: ProcessingGuarantee) -> float:
        group = f"{name}-{round_name}"
        changed = {"group_id": group, "transactional_id": group, "processing_guarantee": guarantee}
        return alone(run_lanes, settings.model_copy(update=changed), bootstrap, registry, total)

    return {
        "floor": alone(consume_all, bootstrap, base.requests_topic),
        "decode": alone(consume_all, bootstrap, base.requests_topic, decode=True),
        "lanes": lanes("lanes", base, ProcessingGuarantee.EXACTLY_ONCE),
        "at_least_once": lanes("at_least_once", base, ProcessingGuarantee.AT_LEAST_ONCE),
        "binary_floor": alone(consume_all, bootstrap, BINARY_TOPIC),
        "binary_lanes": lanes("binary", binary, ProcessingGuarantee.EXACTLY_ONCE),
    }


def measure(arguments: argparse.Namespace, folder: Path) -> Row:
    """All rows of one run."""
    registry_file = folder / "registry.yaml"
    registry_file.write_text(REGISTRY, encoding="utf-8")
    cluster = KafkaCluster(kafka_jars(), folder / "kafka", properties=_WRITE_BACK | _KEEP)
    (folder / "kafka").mkdir()
    cluster.start()
    try:
        bootstrap = cluster.bootstrap
        base = Settings(bootstrap=bootstrap, create_topics=True, replication_factor=1, partitions=PARTITIONS)
        layout = prepare_topics(base, bootstrap)
        assert layout.partitions == PARTITIONS
        trace = workload(arguments.requests)
        size = produce(bootstrap, base.requests_topic, trace)
        rates: dict[str, list[float]] = {}
        binary = base.model_copy(
            update={"requests_topic": BINARY_TOPIC, "requests_format": FormatName.NATIVE_PROTOBUF, **BINARY_OUTPUT}
        )
        prepare_topics(binary, bootstrap)
        produce(bootstrap, BINARY_TOPIC, trace, protobuf_event)
        for attempt in range(_WARM_ROUNDS + arguments.rounds):
            # A store of its own, or the lanes would look through other groups' snapshots as they begin.
            in_store = {"store": str(folder / f"store-{attempt}")}
            own, own_binary = base.model_copy(update=in_store), binary.model_copy(update=in_store)
            measured = measure_rates(own, own_binary, bootstrap, registry_file, len(trace), f"{attempt}")
            shutil.rmtree(folder / f"store-{attempt}")
            if attempt >= _WARM_ROUNDS:
                for name, rate in measured.items():
                    rates.setdefault(name, []).append(rate)
        row = {f"{name}_records_per_s": statistics.median(values) for name, values in rates.items()}
        row |= {
            "requests": len(trace),
            "keys_per_request": len(trace.keys) / len(trace),
            "bytes_per_request": size / len(trace),
            "lanes_over_decode": row["lanes_records_per_s"] / row["decode_records_per_s"],
            "lanes_over_floor": row["lanes_records_per_s"] / row["floor_records_per_s"],
            "binary_lanes_over_floor": row["binary_lanes_records_per_s"] / row["binary_floor_records_per_s"],
            "transactions_cost_share": 1 - row["lanes_records_per_s"] / row["at_least_once_records_per_s"],
        }
        (folder / "store").mkdir()
        with deployed(bootstrap, registry_file, folder / "store", "freshness") as services:
            rate = row["lanes_records_per_s"] * arguments.share
            row |= freshness(bootstrap, services, "freshness.requests", rate, arguments.minutes)
        return row
    finally:
        cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each row; the median counts")
    parser.add_argument("--share", type=float, default=0.5, help="rate of the freshness rows, of the lanes' rate")
    parser.add_argument("--minutes", type=float, default=1.0, help="length of the freshness and memory rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="litehit-pipeline-") as folder:
        row = measure(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(row))
        return
    targets = {
        "lanes_over_decode": ">= 1",
        "binary_lanes_over_floor": ">= 0.5",
        "transactions_cost_share": "<= 0.25",
        "freshness_p99_s": "< 1",
        "lanes_rss_slope_mb_per_minute": "about 0",
    }
    table = Table("row", "value", "target")
    for name, value in row.items():
        table.add_row(name, f"{value:,.3f}", targets.get(name, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
