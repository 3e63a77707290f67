"""From the lines of a Mooncake trace to facts, against the best JSON parser in Python alone on the same lines.

Run: `python -m benchmarks.parsing [--requests N] [--json]`. One column for short lines, as Mooncake's own are (some 28
ids), and one for long ones (some 1,800). Each parser is used at its best, up to what a Python user would go on with:
orjson's and json's dictionaries; msgspec's typed structure; of pysimdjson the integers, and the ids as an array. They
have the lines in memory. `replay` reads the file and writes the facts file, with all cores; `publish` makes of each
line the request event that it would send, for a producer that only steps over them. All are measured in turns, and the
least of the rounds counts. `replay_over_parser` is the speed of `replay` over that of the fastest parser;
`publish_over_parser` likewise.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import simdjson
from rich.console import Console
from rich.table import Table

from litehit.instance import warm_up
from litehit.registry import InstanceConfig, Registry
from litehit.replay import ReplayOptions, replay
from litehit.workload import WorkloadSpec, generate
from service import formats
from service.formats.window_reader import window_reader
from service.outgoing import OutgoingRecord
from service.publish_trace import publish_trace
from service.trace_file import TraceFile

TARGET = 0.6
_ROUNDS = 5
_BLOCK_TOKENS = 512
_INSTANCE = "trace"
_REGISTRY = Registry([InstanceConfig(_INSTANCE, "all", _BLOCK_TOKENS, _BLOCK_TOKENS, 2**20, False, 0, ())])
_TURN_TOKENS = {"short": 4_000, "long": 300_000}


class _Line(msgspec.Struct):
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]


class _Nowhere:
    """A topic that takes everything."""

    def __init__(self) -> None:
        self._taken = 0

    def send(self, records: Iterable[OutgoingRecord]) -> None:
        for _key, _value, _headers in records:
            self._taken += 1

    def wait(self, seconds: float) -> None:
        del seconds

    def finish(self) -> int:
        return self._taken


def write_trace(requests: int, turn_tokens: int, path: Path) -> float:
    """Write a trace; how many ids a line has."""
    trace = generate(
        WorkloadSpec(
            requests=requests,
            block_size_tokens=_BLOCK_TOKENS,
            system_prompt_tokens=2_000,
            mean_turns=3.2,
            turn_tokens=turn_tokens,
            max_prompt_tokens=2**24,
        )
    )
    _, firsts, ids = np.unique(trace.keys, return_index=True, return_inverse=True)
    ids = np.argsort(np.argsort(firsts))[ids]  # ids in order of first sight, as Mooncake's are
    tails = (trace.input_token_lens % _BLOCK_TOKENS > 0).tolist()
    new = len(firsts)
    with path.open("w", encoding="ascii") as sink:
        for request, tail in enumerate(tails):
            own = ids[trace.offsets[request] : trace.offsets[request + 1]].tolist()
            record = {
                "timestamp": int(trace.timestamps_ns[request] - trace.timestamps_ns[0]) // 1_000_000,
                "input_length": int(trace.input_token_lens[request]),
                "output_length": 100,
                "hash_ids": [*own, new + request] if tail else own,
            }
            sink.write(f"{json.dumps(record)}\n")
    return len(ids) / requests


def _simdjson(lines: Sequence[bytes]) -> None:
    parser = simdjson.Parser()
    for line in lines:
        document: Any = parser.parse(line)
        _ = document["timestamp"], document["input_length"], document["output_length"]
        np.frombuffer(document["hash_ids"].as_buffer(of_type="i"), np.int64)
        del document  # the parser can't be used again while it lives


def _each(parse: Callable[[bytes], object]) -> Callable[[Sequence[bytes]], None]:
    def run(lines: Sequence[bytes]) -> None:
        for line in lines:
            parse(line)

    return run


PARSERS: dict[str, Callable[[Sequence[bytes]], None]] = {
    "json": _each(json.loads),
    "orjson": _each(orjson.loads),
    "msgspec": _each(msgspec.json.Decoder(_Line).decode),
    "simdjson": _simdjson,
}


def _replay(path: Path) -> None:
    trace_format = formats.get("mooncake")
    options = ReplayOptions(workers=os.cpu_count() or 1)
    with TraceFile(str(path)) as trace:
        replay(trace.windows(), window_reader(trace_format, _INSTANCE), _REGISTRY, path.parent, options=options)


def _publish(path: Path) -> None:
    with TraceFile(str(path)) as trace:
        publish_trace(
            trace.windows(), _Nowhere(), formats.get("mooncake"), source=path.name, instance_id=_INSTANCE, binary=False
        )


def measure(requests: int, turn_tokens: int, folder: Path) -> dict[str, float]:
    """The row of one trace."""
    path = folder / "trace.jsonl"
    ids = write_trace(requests, turn_tokens, path)
    lines = path.read_bytes().splitlines()
    runs: dict[str, Callable[[], None]] = {
        **{name: lambda parse=parse: parse(lines) for name, parse in PARSERS.items()},  # type: ignore[misc]
        "replay": lambda: _replay(path),
        "publish": lambda: _publish(path),
    }
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - begin)
    fastest = min(best[name] for name in PARSERS)
    return {
        "lines": len(lines),
        "ids_per_line": ids,
        **{f"{name}_us": seconds / len(lines) * 1e6 for name, seconds in best.items()},
        "replay_over_parser": fastest / best["replay"],
        "publish_over_parser": fastest / best["publish"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000, help="short lines; of long ones a fiftieth")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    warm_up()
    rows = {}
    for name, turn_tokens in _TURN_TOKENS.items():
        requests = arguments.requests if name == "short" else max(1, arguments.requests // 50)
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = measure(requests, turn_tokens, Path(folder))
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", *rows, "target")
    for name in rows["short"]:
        values = [f"{row[name]:,.2f}" if isinstance(row[name], float) else f"{row[name]:,}" for row in rows.values()]
        table.add_row(name, *values, f">= {TARGET}" if name.endswith("_over_parser") else "")
    Console().print(table)


if __name__ == "__main__":
    main()
