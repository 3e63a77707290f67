"""How fast facts go from records into segments and back, each step against what it is made of.

Run: `python -m benchmarks.archive [--json]`. All rows are of one run, by the time of one thread, so that ratios hold on
a noisy machine. The consumer's rows are over the embedded broker, which shares the machine and holds some 50,000 facts.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import structlog
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.table import Table

from litehit.core import LiteHit
from litehit.facts import FactBatch
from litehit.workload import WorkloadSpec, generate
from schemas.dead_letter import SOURCE_HEADER
from schemas.fact import RequestFact
from service.archive.archived_facts import ArchivedFacts
from service.archive.archiver import Archiver
from service.archive.catalog import Catalog
from service.archive.decode import FetchedFacts, decode
from service.archive.facts_consumer import FactsConsumer
from service.archive.listener import FactListeners
from service.archive.merge import merge
from service.archive.open_store import open_store
from service.archive.partition import PartitionArchive
from service.archive.segment import ChainKey, read_table
from service.archive.tail import SegmentLimits
from service.embedded import EmbeddedBroker
from service.metrics import ArchiveMetrics
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests.inline_executor import InlineExecutor

BLOCK_TOKENS = 512
FETCHED_RECORDS = 250  # of one partition in one fetch, as seen with four partitions
SMALL_SEGMENT_FACTS = 5_000  # a minute's, at 80 a second
EMBEDDED_BYTES = 4 * 4 * 2**20  # what the embedded broker surely keeps, over its partitions


def make_facts(requests: int) -> FactBatch:
    """Facts of a session-shaped trace of one instance."""
    trace = generate(WorkloadSpec(requests=requests, block_size_tokens=BLOCK_TOKENS))
    curves = LiteHit().process_batch(trace.keys, trace.offsets)
    count = len(trace)
    constant = trace.input_token_lens * 0
    names = [f"request-{number:08d}" for number in range(count)]
    return FactBatch(
        names, ["model"] * count, trace.timestamps_ns, trace.input_token_lens, constant + 512, constant + 2**25, curves
    )


def rate(count: int, work: Callable[[], object]) -> float:
    """So many things a second of this thread's own time."""
    begin = time.thread_time()
    work()
    return count / (time.thread_time() - begin)


def each(work: Callable[[Any], object], things: Iterable[Any]) -> Callable[[], None]:
    """Work on one thing after the other, keeping nothing."""

    def run() -> None:
        for thing in things:
            work(thing)

    return run


def measure_records(records: list[FetchedFacts], count: int) -> dict[str, float]:
    """Rows without Kafka."""
    values = [value or b"" for fetched in records for value in fetched.values]
    store = open_store("memory://")
    limits = SegmentLimits(10**9, 10**12, 10**9)
    metrics, writer = ArchiveMetrics(CollectorRegistry()), InlineExecutor()
    archive = PartitionArchive(ChainKey("facts", "g", 0), 0, limits, Catalog(store), FactListeners(), metrics, writer)
    rows = {
        "model_facts_per_s": rate(count, each(RequestFact.model_validate_json, values)),
        "decode_facts_per_s": rate(count, each(lambda fetched: decode(fetched, 0), records)),
        "append_facts_per_s": rate(count, each(archive.consume, records)),
        "publish_facts_per_s": rate(count, archive.publish),
    }
    catalog = Catalog(store)
    catalog.refresh()
    (info,) = catalog.view.segments
    rows["read_facts_per_s"] = rate(count, lambda: ArchivedFacts.from_table(read_table(store, info.path)[1]))
    rows["record_bytes_per_fact"] = sum(map(len, values)) / count
    rows["segment_bytes_per_fact"] = len(store.read(info.path)) / count
    return rows


def measure_merging(records: list[FetchedFacts], count: int) -> dict[str, float]:
    """Rows of merging small segments into one, with all that belongs to it: reading, checks and deletion."""
    store = open_store("memory://")
    catalog = Catalog(store)
    chain = ChainKey("facts", "g", 0)
    limits = SegmentLimits(SMALL_SEGMENT_FACTS, 10**12, 10**9)
    metrics, writer = ArchiveMetrics(CollectorRegistry()), InlineExecutor()
    archive = PartitionArchive(chain, 0, limits, catalog, FactListeners(), metrics, writer)
    for fetched in records:
        archive.consume(fetched)
    archive.publish()
    catalog.refresh()
    parts = catalog.view.chain(chain).segments
    small_bytes = sum(file.size for file in store.list())
    rows = {"merge_facts_per_s": rate(count, lambda: merge(catalog, parts)), "merge_parts": float(len(parts))}
    rows["merge_bytes_ratio"] = sum(file.size for file in store.list()) / small_bytes
    return rows


def measure_embedded(records: list[FetchedFacts]) -> dict[str, float]:
    """Rows over the embedded broker: only fetching, and the whole archiver."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder)) as broker:
        settings = Settings(embedded=True, store=folder)
        layout = prepare_topics(settings, broker.bootstrap, broker.generation)
        count = _produce(settings, broker.bootstrap, layout, records)
        return {
            "embedded_fetch_facts_per_s": rate(count, lambda: _fetch(settings, broker.bootstrap, layout, count)),
            "embedded_archive_facts_per_s": rate(count, lambda: _archive(settings, broker.bootstrap, layout)),
        }


def _produce(settings: Settings, bootstrap: str, layout: TopicLayout, records: list[FetchedFacts]) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 3})
    count = size_bytes = 0
    for fetched in records:
        size_bytes += sum(len(value or b"") + 100 for value in fetched.values)
        if size_bytes > EMBEDDED_BYTES:
            break
        for value in fetched.values:
            partition = count % layout.partitions
            source = f"{settings.requests_topic}/{partition}/{count}".encode()
            producer.produce(settings.facts_topic, value, b"model", partition, headers=[(SOURCE_HEADER, source)])
            count += 1
        producer.poll(0)
    producer.flush()
    return count


def _fetch(settings: Settings, bootstrap: str, layout: TopicLayout, count: int) -> None:
    consumer = FactsConsumer(settings, bootstrap)
    consumer.read_from(dict.fromkeys(range(layout.partitions), 0))
    while count:
        count -= sum(len(facts) for facts in consumer.fetch().facts.values())
    consumer.close()


def _archive(settings: Settings, bootstrap: str, layout: TopicLayout) -> None:
    """The archiver in this thread, ended by another once nothing is left."""
    metrics = ArchiveMetrics(CollectorRegistry())
    store = open_store(settings.store)
    archiver = Archiver(settings, bootstrap, layout.facts_generation, layout.partitions, store, metrics)
    stop = threading.Event()

    def end() -> None:
        while archiver.backlog():
            time.sleep(0.01)
        stop.set()

    threading.Thread(target=end, daemon=True).start()
    archiver.run(stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--requests", type=int, default=200_000, help="facts to archive")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    facts = make_facts(arguments.requests)
    values = [fact.to_json() for fact in facts]
    sources = [f"litehit.requests/0/{number}".encode() for number in range(len(values))]
    records = [
        FetchedFacts(
            list(range(first, min(first + FETCHED_RECORDS, len(values)))),
            list(values[first : first + FETCHED_RECORDS]),
            list(sources[first : first + FETCHED_RECORDS]),
        )
        for first in range(0, len(values), FETCHED_RECORDS)
    ]
    measure_records(records[:4], sum(map(len, records[:4])))
    rows: dict[str, float] = {"segments_per_curve": len(facts.hit_curves.starts) / len(facts)}
    rows |= measure_records(records, len(values))
    rows |= measure_merging(records, len(values))
    rows |= measure_embedded(records)
    rows["append_over_model"] = rows["append_facts_per_s"] / rows["model_facts_per_s"]
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", "value", "target")
    targets = {"embedded_archive_facts_per_s": ">= 100,000 on one core"}
    for name, value in rows.items():
        table.add_row(name, f"{value:,.1f}" if value < 1000 else f"{value:,.0f}", targets.get(name, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
