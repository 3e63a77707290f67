"""How fast a request event is read in each of its encodings, many at once as the lanes read them.

Run: `python -m benchmarks.encoding [--requests N] [--json]`. The rows of one run are measured in turns, over the same
requests; the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.pipeline import workload
from schemas.request import EVENT
from service.event_json import event_json
from service.event_protobuf import protobuf_event
from service.formats.contents import Contexts
from service.formats.native import NativeFormat
from service.formats.native_protobuf import NativeProtobufFormat
from service.formats.trace_format import TraceFormat

_ROUNDS = 5


def measure(requests: int) -> dict[str, float]:
    """All rows of one run."""
    trace = workload(requests)
    text = [event_json(request) for request in trace.requests()]
    binary = [protobuf_event(request) for request in trace.requests()]
    seconds: dict[str, list[float]] = {"model": [], "json": [], "protobuf": []}
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        for record in text:
            EVENT.validate_json(record)
        seconds["model"].append(time.perf_counter() - begin)
        seconds["json"].append(_read(NativeFormat(), text))
        seconds["protobuf"].append(_read(NativeProtobufFormat(), binary))
    row = {f"{name}_us": min(rounds) / len(text) * 1e6 for name, rounds in seconds.items()}
    return {
        "keys_per_request": len(trace.keys) / len(trace),
        "json_bytes": sum(map(len, text)) / len(text),
        "protobuf_bytes": sum(map(len, binary)) / len(binary),
        **row,
        "json_over_protobuf": row["json_us"] / row["protobuf_us"],
    }


def _read(trace_format: TraceFormat, records: Sequence[bytes]) -> float:
    begin = time.perf_counter()
    trace_format.parse_many(records, Contexts.of_lines(None, range(len(records))))
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    row = measure(arguments.requests)
    if arguments.json:
        print(json.dumps(row))
        return
    table = Table("row", "value")
    for name, value in row.items():
        table.add_row(name, f"{value:,.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
