"""How fast the sidecar answers over a long history, against DuckDB over the same Parquet files.

Run: `python -m benchmarks.query [--facts N] [--json]`. It makes a store of N facts (50 instances, 30 days) and one of a
million, serves each with `litehit serve --roles api`, and asks over HTTP, for answers that are not compressed. With 100
million facts that takes some 15 minutes on two cores and 5 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.facts_store import BLOCK_BYTES, BLOCK_TOKENS, DAY_NS, START_NS, StoreSpec, make_store
from benchmarks.following import measure_following
from benchmarks.http_clients import Load, StandardConnection, answer, latencies
from benchmarks.sidecar import serving
from litehit.projector import HitCurveProjector

SMALL = 1_000_000
CLIENTS = 8
PER_SECOND = 100
CAPACITY_GB = 20.0
WINDOW = (START_NS + 7 * DAY_NS + 12_345_678_901_234, START_NS + 8 * DAY_NS + 12_345_678_901_234)
TARGETS = {
    "query_p50_ms": "< 2",
    "query_p99_ms": "< 10",
    "small_query_p50_ms": "not much less than query_p50_ms",
    "window_ms": "< 50",
    "curve_ms": "< 20",
    "start_s": "< 30",
    "rss_mb": "< 1,000",
    "following_rss_ratio": "<= 1.10",
    "duckdb_ratio": ">= 100",
    "equal": "True",
}


def ask_whole(dice: random.Random) -> str:
    return f"/query?capacity_gb={dice.uniform(0, 64)!r}"


def ask_nothing(dice: random.Random) -> str:
    return "/healthz"


def ask_day(dice: random.Random) -> str:
    first = START_NS + dice.randrange(29 * DAY_NS)
    return f"/query?capacity_gb={dice.uniform(0, 64)!r}&from={first}&to={first + DAY_NS}"


def ask_curve(dice: random.Random) -> str:
    return "/curve?points=200"


def ask_fresh_curve(dice: random.Random) -> str:
    # Another charge each time, so that no answer is one that was kept.
    return f"/curve?points=200&block_bytes={dice.randrange(1, 2**30)}"


def p(percent: float, seconds: np.ndarray) -> float:
    """A percentile in milliseconds."""
    return float(np.percentile(seconds, percent)) * 1e3


def measure_duckdb(store: Path, window: tuple[int, int] | None = None) -> tuple[float, dict[str, list[int]]]:
    """Seconds, and (requests, tokens, hit blocks at `CAPACITY_GB`) by instance."""
    blocks = HitCurveProjector.capacity_blocks(HitCurveProjector.capacity_bytes(CAPACITY_GB), BLOCK_BYTES)
    where = "" if window is None else f"WHERE timestamp_ns >= {window[0]} AND timestamp_ns < {window[1]}"
    hits = f"greatest(0, least(one.run_length, {blocks} - one.start_required_blocks + 1))"
    question = f"""
        SELECT instance_id, count(*), sum(input_token_len)::HUGEINT,
               sum(list_sum(list_transform(hit_curve, lambda one: {hits})))::HUGEINT
        FROM read_parquet('{store}/facts/**/*.parquet') {where} GROUP BY instance_id
    """
    connection = duckdb.connect()
    begin = time.perf_counter()
    rows = connection.execute(question).fetchall()
    return time.perf_counter() - begin, {name: [int(number or 0) for number in numbers] for name, *numbers in rows}


def asked_numbers(url: str, window: tuple[int, int] | None = None) -> dict[str, list[int]]:
    """What `/query` says to `measure_duckdb`'s question."""
    bounds = "" if window is None else f"&from={window[0]}&to={window[1]}"
    told = json.loads(answer(url, f"/query?capacity_gb={CAPACITY_GB}{bounds}"))
    for one in told["instances"]:
        assert one["total_hit_tokens"][0] == one["total_hit_blocks"][0] * BLOCK_TOKENS
    return {
        one["instance_id"]: [one["requests"], one["total_input_tokens"], one["total_hit_blocks"][0]]
        for one in told["instances"]
    }


def measure(store: Path, seconds: float) -> dict[str, Any]:
    """All rows of one store."""
    with serving(store) as sidecar:
        first_start_s = sidecar.start_s
    with serving(store) as sidecar:
        ask = partial(latencies, sidecar.url)
        whole = ask(ask_whole, Load(CLIENTS, seconds, PER_SECOND))
        floor = ask(ask_nothing, Load(CLIENTS, seconds, PER_SECOND))
        slow_whole = ask(ask_whole, Load(CLIENTS, seconds / 2, PER_SECOND, StandardConnection))
        slow_floor = ask(ask_nothing, Load(CLIENTS, seconds / 2, PER_SECOND, StandardConnection))
        alone = ask(ask_whole, Load(1, seconds / 2))
        hurried = ask(ask_whole, Load(CLIENTS, seconds / 2))
        day = ask(ask_day, Load(1, seconds))
        curve = ask(ask_curve, Load(1, seconds / 2))
        fresh_curve = ask(ask_fresh_curve, Load(1, seconds / 2))
        rows = {
            "query_p50_ms": p(50, whole),
            "query_p99_ms": p(99, whole),
            "floor_p50_ms": p(50, floor),
            "floor_p99_ms": p(99, floor),
            "slow_client_query_p50_ms": p(50, slow_whole),
            "slow_client_floor_p50_ms": p(50, slow_floor),
            "alone_query_p50_ms": p(50, alone),
            "hurried_queries_per_s": len(hurried) / (seconds / 2),
            "hurried_query_p50_ms": p(50, hurried),
            "window_ms": p(50, day),
            "window_p99_ms": p(99, day),
            "curve_ms": p(50, curve),
            "fresh_curve_ms": p(50, fresh_curve),
            "first_start_s": first_start_s,
            "start_s": sidecar.start_s,
            "rss_mb": sidecar.memory_mb("VmRSS"),
            "rss_own_mb": sidecar.memory_mb("RssAnon"),
        }
        numbers, of_day = asked_numbers(sidecar.url), asked_numbers(sidecar.url, WINDOW)
    rows |= measure_following(store, (ask_whole, ask_day, ask_curve))
    duckdb_s, expected = measure_duckdb(store)
    _, expected_of_day = measure_duckdb(store, WINDOW)
    rows["duckdb_ms"] = duckdb_s * 1e3
    rows["duckdb_ratio"] = duckdb_s * 1e3 / rows["query_p50_ms"]
    rows["equal"] = numbers == expected and of_day == expected_of_day
    return rows


def size_mb(folder: Path) -> float:
    """Megabytes of the files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def run(facts: int, folder: Path, seconds: float) -> dict[str, Any]:
    """Make the stores and measure both."""
    rows: dict[str, Any] = {"facts": facts}
    for name, count in (("small_", SMALL), ("", facts)):
        store = folder / f"{count}-facts"
        begin = time.perf_counter()
        if not store.exists():
            make_store(str(store), StoreSpec(count))
        rows[f"{name}made_in_s"] = time.perf_counter() - begin
        rows |= {f"{name}{row}": value for row, value in measure(store, seconds).items()}
        rows[f"{name}segments_mb"] = size_mb(store / "facts")
        rows[f"{name}index_mb"] = size_mb(store / "index")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--facts", type=int, default=100_000_000, help="facts of the large store")
    parser.add_argument("--folder", type=Path, help="keep the stores here, and use those that are; default: temporary")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each kind of call is asked")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = run(arguments.facts, arguments.folder or Path(temporary), arguments.seconds)
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("row", "value", "target")
    for name, value in rows.items():
        shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if name == "facts" else str(value)
        table.add_row(name, shown, TARGETS.get(name, ""))
    Console().print(f"{CLIENTS} clients, {PER_SECOND} questions a second in all; hurried: as fast as they can")
    Console().print("floor: /healthz under the same load, which clients and server take before anything is asked")
    Console().print("following: a service that began with half the segments, and saw the others come one by one")
    Console().print("slow client: Python's http.client, where the others are a socket and httptools")
    Console().print(table)


if __name__ == "__main__":
    main()
