"""Totals count each request once: variants are listed beside the instances, and summed where they are asked for."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from litehit.facts import FactBatch
from litehit.query import query
from service.api.index import FactIndex
from service.archive.segment import ChainKey
from tests.api_doubles import Client
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)

FACTS = [
    fact(10, (1, 4)),
    fact(10, (1, 2), instance="chat@coarse", block=8),
    fact(20, (2, 3)),
    fact(20, (1, 1), instance="chat@coarse", block=8),
    fact(30, (1, 1), instance="gone@coarse"),  # without the instance there is nothing that it would count again
    fact(40, (1, 1), instance="joe@example.com"),
]
APART = ["chat@coarse"]
COUNTED = ["chat", "gone@coarse", "joe@example.com"]

CALLS = [
    ("/query", [("capacity_gb", -1)], lambda part: part["total_hit_tokens"][0]),
    ("/curve", [], lambda part: part["ceiling"]["hit_tokens"]),
    ("/capacity", [("of_ceiling", 1)], lambda part: part["capacities"][0]["hit_tokens"]),
]


@pytest.fixture(autouse=True)
def _filled(index: FactIndex) -> None:
    index.appended(CHAIN, rows_of(FACTS, 100))


def ids(parts: list[dict[str, Any]]) -> list[str]:
    return [part["instance_id"] for part in parts]


@pytest.mark.parametrize(("path", "asked", "tokens"), CALLS)
def test_the_total_is_that_of_the_instances_listed(client: Client, path: str, asked: Any, tokens: Any) -> None:
    answer = client.get(path, asked).json()
    assert (ids(answer["instances"]), ids(answer["variants"])) == (COUNTED, APART)
    assert answer["total"]["requests"] == sum(part["requests"] for part in answer["instances"]) == 4
    assert tokens(answer["total"]) == sum(map(tokens, answer["instances"]))
    alone = client.get(path, [*asked, ("instance_id", "chat@coarse")]).json()
    assert alone["instances"] == answer["variants"]
    assert alone["variants"] == []


@pytest.mark.parametrize(("path", "asked", "tokens"), CALLS)
def test_what_is_asked_for_by_id_is_summed(client: Client, path: str, asked: Any, tokens: Any) -> None:
    chosen = [("instance_id", "chat"), ("instance_id", "chat@coarse")]
    answer = client.get(path, [*asked, *chosen]).json()
    assert (ids(answer["instances"]), answer["variants"]) == (["chat", "chat@coarse"], [])
    assert answer["total"]["requests"] == 4
    assert tokens(answer["total"]) == sum(map(tokens, answer["instances"]))


def test_a_window_without_variants_lists_none(client: Client) -> None:
    answer = client.get("/query", [("capacity_gb", -1), ("from", 30)]).json()
    assert (ids(answer["instances"]), answer["variants"]) == (COUNTED[1:], [])


def test_every_instance_is_listed_where_nothing_is_summed(client: Client) -> None:
    assert ids(client.get("/instances").json()["instances"]) == sorted([*COUNTED, *APART])


def test_the_lines_of_a_facts_query_say_which_summary_is_no_part_of_the_total() -> None:
    sink = io.BytesIO()
    query([FactBatch.from_facts(FACTS)], [-1.0], sink)
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    requests, summaries, total = lines[:6], lines[6:-1], lines[-1]
    assert ids(requests) == [one.instance_id for one in FACTS]
    assert ids(summaries) == sorted([*COUNTED, *APART])
    assert {one["instance_id"]: one["variant_of"] for one in summaries if "variant_of" in one} == {
        "chat@coarse": "chat"
    }
    assert total["total_hit_tokens"] == [
        sum(one["total_hit_tokens"][0] for one in summaries if "variant_of" not in one)
    ]
    assert total["requests"] == 4
