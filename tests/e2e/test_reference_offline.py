"""The reference answers of the real traces, out of a replay and a query."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from litehit.facts_csv import read_facts
from litehit.query import query
from litehit.registry import Registry
from litehit.replay import ReplayOptions, replay
from litehit.targets import Routing
from service import formats
from service.formats.window_reader import window_reader
from service.trace_file import TraceFile

CAPACITIES = [15, 253, 1013, 4053, 8106, 16213, 32427, 64854, -1]
REFERENCE = {
    "conversation": (12031, 144_793_823, [12030, 12096, 13020, 26252, 53887, 77790, 97541, 103775, 105592]),
    "synthetic": (3993, 61_194_628, [178, 2947, 10441, 30686, 46890, 65740, 77121, 77740, 77740]),
}
CEILING = {"conversation": 0.373379906, "synthetic": 0.650430950}
REGISTRY = """\
groups: [{name: g}]
instances:
  - {instance_id: fine, group: g, block_size_tokens: 512, block_bytes: 1048576}
  - {instance_id: coarse, group: g, block_size_tokens: 1024, trace_block_size_tokens: 512, block_bytes: 1048576}
"""


def summaries(trace: Path, out: Path, **options: Any) -> dict[str, dict[str, Any]]:
    """The summary of each instance by id, at the nine capacities, in blocks of 1 MiB."""
    registry_file = out / "registry.yaml"
    registry_file.write_text(REGISTRY)
    registry = Registry.load(registry_file)
    chosen = ReplayOptions(**options)
    read = window_reader(formats.get("mooncake"), chosen.default_instance(registry))
    with TraceFile(str(trace)) as lines:
        summary = replay(lines.windows(), read, registry, out / "facts", source=trace.name, options=chosen)
    sink = io.BytesIO()
    with summary.path.open("rb") as facts:
        query(read_facts(facts, summary.path.name), [blocks / 1024 for blocks in CAPACITIES], sink)
    rows = [json.loads(row) for row in sink.getvalue().splitlines()]
    assert len([row for row in rows if "summary" not in row]) == summary.facts
    return {row["instance_id"]: row for row in rows if row.get("summary") == "instance"}


@pytest.mark.parametrize("name", REFERENCE)
def test_both_traces_give_the_reference_answers(
    mooncake_trace: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    requests, tokens, hit_blocks = REFERENCE[name]
    answer = summaries(mooncake_trace(name), tmp_path, workers=3, instance_id="fine")
    assert list(answer) == ["fine"]
    assert answer["fine"]["requests"] == requests
    assert answer["fine"]["total_input_tokens"] == tokens
    assert answer["fine"]["total_hit_blocks"] == hit_blocks
    assert answer["fine"]["hit_rates"][-1] == pytest.approx(CEILING[name], abs=5e-10)


def test_coarsened_beside_the_fine_by_fanout(mooncake_trace: Callable[[str], Path], tmp_path: Path) -> None:
    answer = summaries(mooncake_trace("conversation"), tmp_path, workers=2, routing=Routing(fanout_all_instances=True))
    assert answer["fine"]["total_hit_blocks"] == REFERENCE["conversation"][2]
    at = dict(zip(CAPACITIES, answer["coarse"]["total_hit_blocks"], strict=True))
    assert (at[4053], at[16213], at[-1]) == (21125, 43704, 48021)


def test_a_compressed_trace_gives_the_same(mooncake_trace: Callable[[str], Path], tmp_path: Path) -> None:
    trace = tmp_path / "synthetic.jsonl.gz"
    trace.write_bytes(gzip.compress(mooncake_trace("synthetic").read_bytes(), 1))
    answer = summaries(trace, tmp_path, routing=Routing(override_instance_id="fine"))
    assert answer["fine"]["total_hit_blocks"] == REFERENCE["synthetic"][2]


def test_a_trace_replayed_backwards_gives_the_same_totals(
    mooncake_trace: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = [json.loads(line) for line in mooncake_trace("conversation").read_bytes().splitlines()]
    for time, fields in enumerate(reversed(lines)):
        fields["timestamp"] = time
    trace = tmp_path / "backwards.jsonl"
    trace.write_text("".join(json.dumps(fields) + "\n" for fields in reversed(lines)))
    answer = summaries(trace, tmp_path, instance_id="fine")
    assert answer["fine"]["total_hit_blocks"] == REFERENCE["conversation"][2]
