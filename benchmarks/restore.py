"""What a snapshot costs a lane, and how soon a lane is warm again, against reading the same file.

Run: `python -m benchmarks.restore [--blocks N] [--json]`. All rows are measured in one run, in turns, so the ratios
hold on a noisy machine; reading and restoring are compared by their fastest rounds, which others disturb least.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from litehit.registry import InstanceConfig, Registry
from service import formats
from service.archive.open_store import open_store
from service.format_names import FormatName
from service.lanes.committed import RequestsTopic
from service.lanes.lane import Lane, LaneTargets
from service.lanes.reading import read_records
from service.lanes.snapshot import Snapshot
from service.lanes.snapshots import Snapshots
from service.records import SourceRecord, SourceRecords

TOPIC = RequestsTopic("requests", "benchmark", 1)
REGISTRY = Registry([InstanceConfig("one", "all", 16, 16, 2**20, False, 0, (64.0,))])
REQUEST_BLOCKS = 500
BATCH_RECORDS = 500

T = TypeVar("T")


def new_lane(restored: Snapshot | None = None) -> Lane:
    return Lane(0, REGISTRY, LaneTargets("facts", "dead", 10**6), restored=restored)


def records(blocks: int) -> Iterator[SourceRecord]:
    """Each chain of blocks once, then a quarter of them again in another order, as sessions come back."""
    random = np.random.default_rng(7)
    chains = -(-blocks // REQUEST_BLOCKS)
    seeds = random.integers(0, 2**62, chains)
    again = random.permutation(chains)[: chains // 4]
    for offset, chain in enumerate([*range(chains), *again.tolist()]):
        keys = np.random.default_rng(seeds[chain]).integers(-(2**63), 2**63, REQUEST_BLOCKS)
        event = {
            "type": "request",
            "instance_id": "one",
            "trace_id": f"t{offset}",
            "timestamp_ns": offset,
            "block_keys": keys.tolist(),
            "input_token_len": 16 * REQUEST_BLOCKS,
        }
        yield SourceRecord(TOPIC.name, 0, offset, b"one", json.dumps(event).encode(), 0)


def filled_lane(blocks: int) -> Lane:
    """A lane that has taken so many blocks in."""
    lane = new_lane()
    batch: list[SourceRecord] = []
    for record in records(blocks):
        batch.append(record)
        if len(batch) == BATCH_RECORDS:
            lane.process(read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of(batch)))
            batch = []
    if batch:
        lane.process(read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of(batch)))
    return lane


def measure(blocks: int, rounds: int) -> dict[str, float | int]:
    """All rows of one run."""
    lane = filled_lane(blocks)
    seconds: defaultdict[str, list[float]] = defaultdict(list)

    def timed(row: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        result = work()
        seconds[row].append(time.perf_counter() - began)
        return result

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        snapshots = Snapshots(store, TOPIC)

        def one_round() -> Lane:
            frozen = timed("pause", lane.freeze)
            snapshot = timed("make", lambda: frozen.snapshot(TOPIC))
            path = snapshot.path
            store.delete(path)
            timed("write", lambda: snapshots.write(snapshot))
            timed("read", lambda: len(store.read(path)))
            timed("read_and_checksum", lambda: zlib.crc32(store.read(path)))
            return timed("restore", lambda: new_lane(snapshots.read(path)))

        one_round()  # compiles, and touches memory for the first time
        seconds.clear()
        for _ in range(rounds):
            restored = one_round()
        (file,) = snapshots.files(0)
    (status,) = restored.instances()
    best = {row: min(measured) for row, measured in seconds.items()}
    return {
        "unique_blocks": status.unique_blocks,
        "file_bytes": file.size,
        "bytes_per_block": file.size / status.unique_blocks,
        "pause_ms": statistics.median(seconds["pause"]) * 1e3,
        **{f"{row}_ms": best[row] * 1e3 for row in ("make", "write", "read", "read_and_checksum", "restore")},
        "restore_over_read_and_checksum_speed": best["read_and_checksum"] / best["restore"],
        "warm_after_read_seconds": best["restore"] - best["read"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10_000_000, help="unique blocks of the lane")
    parser.add_argument("--rounds", type=int, default=5, help="how often each row is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    rows = measure(arguments.blocks, arguments.rounds)
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", "value", "target at 10 million blocks")
    targets = {
        "pause_ms": "<= 250",
        "restore_over_read_and_checksum_speed": ">= 0.60",
        "warm_after_read_seconds": "<= 1",
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}", targets.get(name, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
