"""From a trace file to hit rates at 15 capacities, against kvcache-simulator over the same file.

Run: `python -m benchmarks.replay [--requests N] [--peer COMMAND] [--json]`. It generates session-shaped requests in
the format `mooncake` (50,000 of them hold 93 million blocks: 1 GB), runs `litehit replay` and `litehit query`, and sums
the hits of the last half of the requests from the query's lines; all three count, by the wall clock. Then the peer,
where its command is found, answers for the same budgets: `pip install kvcache-simulator==0.1.3`, best into an
environment of its own. With 50,000 requests that takes some nine minutes and 6 GB of memory, which are the peer's.

Its hits are compared with ours where the definitions are the same. They are for a prefix in an LRU cache, whose leaves
leave first, so `agree` must be `compared`. They are not for:
- requests: it counts those of the last half alone, so ours are summed over the same ones (we give each request's);
- a prompt's partial last block: it makes that a block, and we none, so the prompts here are of whole blocks;
- budgets: it gives no answer for one that is not full before the last half, nor for any larger one; ours are there;
- a prompt longer than the cache: it drops the last block that it put in for the next, and keeps one block less of it
  than the cache holds. So budgets that do not hold the longest prompt are not among `compared`; `differ_at_most` tells
  how far its hits are off there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from litehit.workload import WorkloadSpec, generate

PEER = "kvcache-simulator"
INSTALL = "pip install kvcache-simulator==0.1.3"
MODEL = "llama-3.1-8b"
BLOCK_TOKENS = 16
BLOCK_BYTES = 2 * 2**20
"""What the peer's catalogue gives for 16 tokens of the model; its own answer is held against it."""

CAPACITIES_GB = tuple(2**exponent for exponent in range(15))  # the peer's own budgets
TARGET = 20.0
INSTANCE = "trace"
REGISTRY = f"""
groups: [{{name: all}}]
instances:
  - {{instance_id: {INSTANCE}, group: all, block_size_tokens: {BLOCK_TOKENS}, block_bytes: {BLOCK_BYTES}}}
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A command that ended well.

    Attributes:
        seconds: by the wall clock.
        peak_mb: most resident memory of its process, or of one that it waited for.
    """

    seconds: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Shape:
    """What a trace holds, in blocks.

    Attributes:
        blocks, unique: of all requests.
        longest: of one request.
    """

    blocks: int
    unique: int
    longest: int


def spec(requests: int) -> WorkloadSpec:
    """Long chats: some 1,900 blocks a request."""
    return WorkloadSpec(
        requests=requests,
        block_size_tokens=BLOCK_TOKENS,
        system_prompts=64,
        system_prompt_tokens=1_500,
        mean_turns=3.2,
        turn_tokens=9_000,
        max_prompt_tokens=2**24,
    )


def write_trace(requests: int, path: Path) -> Shape:
    """Write a trace in Mooncake's format, prompts of whole blocks, ids small as there."""
    trace = generate(spec(requests))
    unique, ids = np.unique(trace.keys, return_inverse=True)
    times = (trace.timestamps_ns - trace.timestamps_ns[0]) // 1_000_000
    with path.open("w", encoding="ascii") as sink:
        for request, time_ms in enumerate(times.tolist()):
            own = ids[trace.offsets[request] : trace.offsets[request + 1]].tolist()
            record = {
                "timestamp": time_ms,
                "input_length": len(own) * BLOCK_TOKENS,
                "output_length": 100,
                "block_size": BLOCK_TOKENS,
                "hash_ids": own,
            }
            sink.write(f"{json.dumps(record)}\n")
    return Shape(len(ids), len(unique), int(np.diff(trace.offsets).max()))


def run(*command: str | Path) -> Run:
    """Run a command to its end.

    Raises:
        CalledProcessError: it failed.
    """
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(time.perf_counter() - begin, usage.ru_maxrss / 1024)


def litehit(*arguments: str | Path) -> Run:
    """Run one of our own commands."""
    return run(sys.executable, "-m", "service.cli", *arguments)


def last_half(answers: Path, requests: int) -> list[int]:
    """Hit tokens of the requests from the middle on, one number a capacity."""
    hits = [0] * len(CAPACITIES_GB)
    with answers.open("rb") as lines:
        for number, line in enumerate(lines):
            if requests // 2 <= number < requests:
                own = json.loads(line)["hit_blocks"]
                hits = [total + BLOCK_TOKENS * blocks for total, blocks in zip(hits, own, strict=True)]
    return hits


def ask_peer(peer: str, trace: Path, answers: Path) -> tuple[Run, dict[int, int]]:
    """Run the peer; its hit tokens by the budgets, in GiB, that it gives an answer for."""
    budgets = ",".join(map(str, CAPACITIES_GB))
    ran = run(
        *(peer, "run", "--trace", trace, "--model", MODEL, "--policies", "lru", "--budgets-gib", budgets),
        *("--format", "json", "--no-progress", "--output", answers),
    )
    answer = json.loads(answers.read_bytes())
    charged = answer["metadata"]["bytesPerBlock"]
    if charged != BLOCK_BYTES:
        raise ValueError(f"{peer} charges {charged} bytes for a block of {MODEL}, not {BLOCK_BYTES}; {INSTALL}")
    return ran, {int(point["gib"]): point["results"]["lru"]["hitTokens"] for point in answer["points"]}


def measure(requests: int, peer: str | None, folder: Path) -> dict[str, float | int | bool]:
    """All rows of one run."""
    trace, registry, answers = folder / "trace.jsonl", folder / "registry.yaml", folder / "answers.jsonl"
    # In a process of its own: what this one holds when it starts another would count as that one's.
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        shape = apart.submit(write_trace, requests, trace).result()
    registry.write_text(REGISTRY, encoding="utf-8")
    read = litehit("replay", trace, "--format", "mooncake", "--registry", registry, "--out", folder)
    facts = folder / "litehit_facts.csv"
    asked = litehit("query", facts, "--out", answers, "--capacity-gb", *map(str, CAPACITIES_GB))
    begin = time.perf_counter()
    hits = last_half(answers, requests)
    summed = time.perf_counter() - begin
    seconds = read.seconds + asked.seconds + summed
    rows: dict[str, float | int | bool] = {
        "requests": requests,
        "blocks": shape.blocks,
        "unique_blocks": shape.unique,
        "longest_blocks": shape.longest,
        "trace_mb": trace.stat().st_size / 1e6,
        "replay_s": read.seconds,
        "query_s": asked.seconds,
        "last_half_s": summed,
        "all_s": seconds,
        "blocks_per_s": shape.blocks / seconds,
        "peak_mb": max(read.peak_mb, asked.peak_mb),
    }
    if peer is not None:
        ran, given = ask_peer(peer, trace, folder / "peer.json")
        ours = dict(zip(CAPACITIES_GB, hits, strict=True))
        same = [budget for budget in given if budget * 2**30 >= shape.longest * BLOCK_BYTES]
        rows |= {
            "peer_s": ran.seconds,
            "peer_peak_mb": ran.peak_mb,
            "times_faster": ran.seconds / seconds,
            "answers": len(given),
            "compared": len(same),
            "agree": sum(ours[budget] == given[budget] for budget in same),
            "differ_at_most": max(
                (abs(ours[budget] - tokens) / max(tokens, 1) for budget, tokens in given.items()), default=0.0
            ),
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--peer", default=shutil.which(PEER), help=f"command of {PEER}; default: the one on PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(arguments.requests, arguments.peer, Path(folder))
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", "value", "target")
    for name, value in rows.items():
        target = {"times_faster": f">= {TARGET:g}", "agree": "as many as compared"}.get(name, "")
        table.add_row(
            name,
            f"{value:,.4g}" if value < 1 else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}",
            target,
        )
    console = Console()
    console.print(table)
    if arguments.peer is None:
        console.print(f"{PEER} was not found, so nothing is compared; {INSTALL}, or name its command with --peer")


if __name__ == "__main__":
    main()
