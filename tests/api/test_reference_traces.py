"""The reference answers of the real traces, out of every call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litehit.facts_csv import read_facts
from litehit.registry import Registry
from litehit.replay import ReplayOptions, replay
from service import formats
from service.archive.segment import ChainKey
from service.formats.window_reader import window_reader
from service.trace_file import TraceFile
from tests.api_archive import ApiArchive
from tests.api_doubles import Client

BLOCK_BYTES = 1_048_576
CAPACITIES = [15, 253, 1013, 4053, 8106, 16213, 32427, 64854]
FINE = {
    "conversation": [12030, 12096, 13020, 26252, 53887, 77790, 97541, 103775, 105592],
    "synthetic": [178, 2947, 10441, 30686, 46890, 65740, 77121, 77740, 77740],
}
CEILING_RATE = {"conversation": 0.373379906, "synthetic": 0.650430950}
REGISTRY = f"""
groups: [{{name: all}}]
instances:
  - {{instance_id: conversation, group: all, block_size_tokens: 512, block_bytes: {BLOCK_BYTES}}}
  - {{instance_id: synthetic, group: all, block_size_tokens: 512, block_bytes: {BLOCK_BYTES}}}
"""


@pytest.fixture(scope="module")
def client(mooncake_trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of both traces: one in a segment, the other in the open tail."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    registry = Registry.load(folder / "registry.yaml")
    archive = ApiArchive(folder / "store")
    for partition, name in enumerate(FINE):
        options = ReplayOptions(instance_id=name)
        with TraceFile(str(mooncake_trace(name))) as lines:
            read = window_reader(formats.get("mooncake"), name)
            done = replay(lines.windows(), read, registry, folder / name, source=name, options=options)
        with done.path.open("rb") as file:
            for batch in read_facts(file, name):
                archive.append_rows(ChainKey("facts", "g", partition), batch)
    archive.publish(ChainKey("facts", "g", 0))
    made = Client(archive.app)
    yield made
    made.close()


def part_of(answer: Any, name: str) -> dict[str, Any]:
    (found,) = [one for one in answer["instances"] if one["instance_id"] == name]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", FINE)
def test_query(client: Client, name: str) -> None:
    asked = [("capacity_gb", blocks * BLOCK_BYTES / 2**30) for blocks in CAPACITIES]
    part = part_of(client.get("/query", [*asked, ("capacity_gb", -1)]).json(), name)
    assert part["total_hit_blocks"] == FINE[name]
    assert part["ceiling"]["hit_rate"] == pytest.approx(CEILING_RATE[name], abs=5e-10)


@pytest.mark.parametrize("name", FINE)
def test_the_whole_curve_goes_through_them(client: Client, name: str) -> None:
    part = part_of(client.get("/curve").json(), name)
    assert part["largest_error"]["hit_blocks"] == 0
    between = np.interp(CAPACITIES, part["capacity_blocks"], part["hit_blocks"])
    assert between.tolist() == pytest.approx(FINE[name][:-1], rel=1e-12)
    assert part["hit_blocks"][-1] == part["ceiling"]["hit_blocks"] == FINE[name][-1]


@pytest.mark.parametrize("name", FINE)
def test_two_hundred_points_are_exact_and_as_near_between_as_they_say(client: Client, name: str) -> None:
    whole = part_of(client.get("/curve").json(), name)
    part = part_of(client.get("/curve", [("points", 200)]).json(), name)
    assert 100 <= len(part["capacity_gb"]) <= 200
    query = client.get("/query", [("instance_id", name), *(("capacity_gb", gb) for gb in part["capacity_gb"])]).json()
    assert query["total"]["total_hit_blocks"] == part["hit_blocks"]
    assert query["total"]["hit_rates"] == part["hit_rates"]
    off = np.interp(whole["capacity_blocks"], part["capacity_blocks"], part["hit_blocks"]) - whole["hit_blocks"]
    largest = np.abs(off).max()
    assert largest <= part["largest_error"]["hit_blocks"] <= largest + FINE[name][-1] / 400
    # Without jumps of a single block, the hits rise by about a two-hundredth from point to point.
    steps = list(zip(part["capacity_blocks"], part["hit_blocks"], strict=True))
    assert all(high - low <= 3 * FINE[name][-1] / 200 for (at, low), (to, high) in pairwise(steps) if to - at > 1)


@pytest.mark.parametrize("name", FINE)
def test_the_inverse(client: Client, name: str) -> None:
    shares = [("of_ceiling", share) for share in (".6", ".95", "1")]
    part = part_of(client.get("/capacity", [("hit_rate", ".3"), ("hit_rate", ".7"), *shares]).json(), name)
    assert [one["reachable"] for one in part["capacities"]] == [True, False, True, True, True]
    for one in part["capacities"]:
        if one["reachable"]:
            wanted = one["hit_rate_wanted"] or one["of_ceiling_wanted"] * part["ceiling"]["hit_rate"]
            smaller = (one["capacity_blocks"] - 1) * BLOCK_BYTES / 2**30
            asked = [("instance_id", name), ("capacity_gb", one["capacity_gb"]), ("capacity_gb", smaller)]
            reached, missed = client.get("/query", asked).json()["total"]["hit_rates"]
            assert reached >= wanted > missed


@pytest.mark.parametrize("name", FINE)
def test_requests_and_facts(client: Client, name: str) -> None:
    asked = [("capacity_gb", 4053 / 1024), ("capacity_gb", -1), ("instance_id", name)]
    *lines, of_instance, total = map(json.loads, client.get("/query/requests", asked).text.splitlines())
    assert [sum(line["hit_blocks"][slot] for line in lines) for slot in (0, 1)] == [FINE[name][3], FINE[name][-1]]
    assert of_instance["total_hit_blocks"] == total["total_hit_blocks"] == [FINE[name][3], FINE[name][-1]]
    cursor: list[tuple[str, object]] = []
    runs = count = 0
    while True:
        page = client.get("/facts", [("instance_id", name), ("limit", 10_000), *cursor])
        facts = [json.loads(line) for line in page.text.splitlines()]
        count += len(facts)
        runs += sum(run for fact in facts for _, run in fact["hit_curve"])
        cursor = [("cursor", page.headers["litehit-cursor"])]
        if "link" not in page.headers:
            break
    assert (count, runs) == (len(lines), FINE[name][-1])


def test_a_window_of_the_trace_in_nanoseconds_from_its_start(client: Client) -> None:
    """Half an hour has thirteen digits, as a time of today in milliseconds has; these facts are as early."""
    whole = client.get("/query", [("capacity_gb", 1)]).json()["total"]["requests"]
    halves = [
        client.get("/query", [("capacity_gb", 1), (end, "1800000000000")]).json()["total"]["requests"]
        for end in ("from", "to")
    ]
    assert min(halves) > 0
    assert sum(halves) == whole
