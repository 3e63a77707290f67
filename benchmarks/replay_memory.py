"""Memory of `litehit replay` for files larger than the memory that it may take.

Run: `python -m benchmarks.replay_memory [--gb G] [--json]`. It repeats a session-shaped trace (some 1,900 blocks a
request) until a file in the format `mooncake` has so many gigabytes, so the blocks are a bounded set, and replays it as
it is, through gzip and through zstd, and a fifth of it. Each replay may have 1 GB of data (`RLIMIT_DATA`), else it
fails; `peak_mb` is the most that was resident. A fifth of the file takes as much as the whole: memory is that of the
blocks, not of the file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.replay import REGISTRY, litehit, write_trace

LIMIT_BYTES = 2**30
_BASE_REQUESTS = 2_000
_PARTS = 5
_GZIP_LEVEL = 1  # quickly written, and read as any other


def write_traces(size: int, folder: Path) -> list[Path]:
    """Write the traces: the fifth, the whole, and the whole compressed in each way."""
    base, whole, part = (folder / f"{name}.jsonl" for name in ("base", "whole", "part"))
    write_trace(_BASE_REQUESTS, base)
    lines = [line.split(b",", 1)[1] for line in base.read_bytes().splitlines(keepends=True)]
    base.unlink()
    gz, zst = (whole.with_name(whole.name + suffix) for suffix in (".gz", ".zst"))
    with (
        whole.open("wb") as sink,
        part.open("wb") as short,
        gzip.open(gz, "wb", _GZIP_LEVEL) as gz_sink,
        pa.CompressedOutputStream(str(zst), "zstd") as zst_sink,
    ):
        written = turn = 0
        while written < size:
            first = turn * _BASE_REQUESTS
            text = b"".join(b'{"timestamp": %d,%b' % (time, line) for time, line in enumerate(lines, first))
            for each in (sink, gz_sink, zst_sink, *([short] if written < size / _PARTS else [])):
                each.write(text)
            written += len(text)
            turn += 1
    return [part, whole, gz, zst]


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))


def measure(size: int, folder: Path) -> dict[str, dict[str, float]]:
    """All rows of one run."""
    registry = folder / "registry.yaml"
    registry.write_text(REGISTRY, encoding="utf-8")
    # In processes of their own: what this one holds when it starts another would count as that one's.
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        paths = apart.submit(write_traces, size, folder).result()
    _limit()
    rows = {}
    for path in paths:
        ran = litehit("replay", path, "--format", "mooncake", "--registry", registry, "--out", folder)
        rows[path.name] = {"file_mb": path.stat().st_size / 1e6, "seconds": ran.seconds, "peak_mb": ran.peak_mb}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0, help="size of the whole file, not compressed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(round(arguments.gb * 1e9), Path(folder))
    if arguments.json:
        print(json.dumps(rows))
        return
    table = Table("trace", "file, MB", "seconds", "peak, MB")
    for name, row in rows.items():
        table.add_row(name, *(f"{value:,.1f}" for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
