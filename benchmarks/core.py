"""Speed and memory of the core against the textbook design, and against what the machine's memory can do.

Run: `python -m benchmarks.core [--json]`. Every row is measured in one run, in turns, so the ratios hold on a noisy
machine; the targets are ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.textbook import Textbook
from litehit.core import LiteHit
from litehit.curves import FlatCurves
from litehit.jit import kernel
from litehit.workload import RequestColumns, WorkloadSpec, generate

TRACE = WorkloadSpec(
    requests=100_000,
    block_size_tokens=16,
    system_prompts=64,
    system_prompt_tokens=1_500,
    mean_turns=3.8,
    turn_tokens=1_500,
)
BATCH_REQUESTS = 500
PROBE_BYTES = 128 * 2**20


@kernel()
def _random_reads(table: NDArray[np.int64], count: int) -> int:
    # A linear congruential generator picks the element, so reads do not wait for one another, as in the engine.
    mask = len(table) - 1
    state = np.uint64(1)
    total = 0
    for _ in range(count):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        total += table[np.int64(state >> np.uint64(32)) & mask]
    return total


@kernel()
def _stream(source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    for i in range(len(source)):
        target[i] = source[i] + 1


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def probe() -> tuple[float, float]:
    """Nanoseconds of one random 8-byte read in a 128 MiB table, and of one streamed 8-byte read and write."""
    table = np.ones(PROBE_BYTES // 8, np.int64)
    target = np.zeros_like(table)
    reads = 20_000_000
    random_read = _seconds(lambda: _random_reads(table, reads)) / reads
    stream = _seconds(lambda: _stream(table, target)) / len(table)
    return random_read * 1e9, stream * 1e9


def run_engine(trace: RequestColumns) -> tuple[LiteHit, FlatCurves]:
    """The trace through a fresh core, in batches as a lane takes them."""
    core = LiteHit()
    parts = []
    for first in range(0, len(trace), BATCH_REQUESTS):
        offsets = trace.offsets[first : first + BATCH_REQUESTS + 1]
        parts.append(core.process_batch(trace.keys[offsets[0] : offsets[-1]], offsets - offsets[0]))
    return core, FlatCurves.concatenate(parts)


def checksum(curves: FlatCurves) -> int:
    """CRC of every segment and every curve's bounds."""
    return zlib.crc32(curves.offsets.tobytes(), zlib.crc32(curves.runs.tobytes(), zlib.crc32(curves.starts.tobytes())))


def measure(trace: RequestColumns, rounds: int) -> dict[str, float | int | bool]:
    """All rows of one run."""
    accesses = len(trace.keys)
    small = generate(WorkloadSpec(requests=50))
    run_engine(small)
    Textbook(len(small.keys), len(small.keys)).process(small.keys, small.offsets)
    probe()

    engine_seconds, reads, streams = [], [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        core, engine_curves = run_engine(trace)
        engine_seconds.append(time.perf_counter() - begin)
        random_read, stream = probe()
        reads.append(random_read)
        streams.append(stream)
    unique = core.current_unique_blocks()
    begin = time.perf_counter()
    textbook_curves = Textbook(accesses, unique).process(trace.keys, trace.offsets)
    textbook_seconds = time.perf_counter() - begin

    engine = statistics.median(engine_seconds) / accesses * 1e9
    textbook = textbook_seconds / accesses * 1e9
    random_read = statistics.median(reads)
    return {
        "requests": len(trace),
        "block_accesses": accesses,
        "unique_blocks": unique,
        "segments": len(engine_curves.starts),
        "engine_ns_per_block": engine,
        "textbook_ns_per_block": textbook,
        "random_read_ns": random_read,
        "stream_ns": statistics.median(streams),
        "engine_random_reads_per_block": engine / random_read,
        "textbook_over_engine": textbook / engine,
        "bytes_per_unique_block": core.memory_usage_bytes() / unique,
        "checksums_equal": checksum(engine_curves) == checksum(textbook_curves),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=3, help="runs of the engine; the median counts")
    arguments = parser.parse_args()
    rows = measure(generate(TRACE), arguments.rounds)
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", "value", "target")
    targets = {
        "engine_random_reads_per_block": "<= 2",
        "textbook_over_engine": ">= 8",
        "bytes_per_unique_block": "<= 40",
        "checksums_equal": "True",
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}", targets.get(name, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
