"""`GET /query`: the shape of its answer and the meaning of its parameters."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from schemas.answers import QueryAnswer
from service.api.index import FactIndex
from service.archive.segment import ChainKey
from tests.api_doubles import Client, Segments
from tests.histories import fact, rows_of, segment_of

CHAIN = ChainKey("litehit.facts", "g1", 0)


# Four blocks of 2**28 bytes make 1 GB.
FACTS = [fact(10, (1, 4)), fact(20, (2, 3), (9, 2)), fact(30, instance="code", block=16), fact(40, (6, 1))]


@pytest.fixture
def filled(index: FactIndex) -> FactIndex:
    index.appended(CHAIN, rows_of(FACTS, 100, step=2))
    return index


def test_an_answer_in_full(filled: FactIndex, client: Client) -> None:
    response = client.get("/query", [("capacity_gb", 1), ("capacity_gb", -1), ("capacity_gb", 0), ("capacity_gb", 1)])
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "total": {
            "requests": 4,
            "total_input_tokens": 400,
            "capacity_gb": [1.0, -1.0, 0.0, 1.0],
            "total_hit_blocks": [7, 10, 0, 7],
            "total_hit_tokens": [28, 40, 0, 28],
            "hit_rates": [0.07, 0.1, 0.0, 0.07],
            "of_ceiling": [0.7, 1.0, 0.0, 0.7],
            "gain_per_gb": {
                "hit_blocks": [1, 0, 7, 1],
                "hit_tokens": [4, 0, 28, 4],
                "hit_rates": [0.01, 0.0, 0.07, 0.01],
            },
            "ceiling": {"hit_blocks": 10, "hit_tokens": 40, "hit_rate": 0.1},
        },
        "instances": [
            {
                "instance_id": "chat",
                "requests": 3,
                "total_input_tokens": 300,
                "capacity_gb": [1.0, -1.0, 0.0, 1.0],
                "total_hit_blocks": [7, 10, 0, 7],
                "total_hit_tokens": [28, 40, 0, 28],
                "hit_rates": [28 / 300, 40 / 300, 0.0, 28 / 300],
                "of_ceiling": [0.7, 1.0, 0.0, 0.7],
                "gain_per_gb": {
                    "hit_blocks": [1, 0, 7, 1],
                    "hit_tokens": [4, 0, 28, 4],
                    "hit_rates": [4 / 300, 0.0, 28 / 300, 4 / 300],
                },
                "ceiling": {"hit_blocks": 10, "hit_tokens": 40, "hit_rate": 40 / 300},
            },
            {
                "instance_id": "code",
                "requests": 1,
                "total_input_tokens": 100,
                "capacity_gb": [1.0, -1.0, 0.0, 1.0],
                "total_hit_blocks": [0, 0, 0, 0],
                "total_hit_tokens": [0, 0, 0, 0],
                "hit_rates": [0.0, 0.0, 0.0, 0.0],
                "of_ceiling": [1.0, 1.0, 1.0, 1.0],
                "gain_per_gb": {"hit_blocks": [0] * 4, "hit_tokens": [0] * 4, "hit_rates": [0.0] * 4},
                "ceiling": {"hit_blocks": 0, "hit_tokens": 0, "hit_rate": 0.0},
            },
        ],
        "variants": [],
        "window": {"from": None, "to": None, "from_ns": None, "to_ns": None},
        "as_of": [
            {
                "topic": "litehit.facts",
                "generation": "g1",
                "partition": 0,
                "start_offset": 0,
                "next_offset": 107,
                "missing": [],
                "unreadable": [],
                "time": "1970-01-01T00:00:00.000000040Z",
                "time_ns": 40,
                "lag": None,
            }
        ],
    }


def test_an_index_without_facts_answers_zero(client: Client) -> None:
    answer = client.get("/query", [("capacity_gb", 8)]).json()
    assert answer["total"]["requests"] == 0
    assert answer["total"]["hit_rates"] == [0.0]
    assert answer["total"]["ceiling"]["hit_rate"] == 0.0
    assert answer["instances"] == answer["as_of"] == []


@pytest.mark.parametrize(
    ("first", "last", "times"),
    [
        ("10", "40", [10, 20, 30]),
        ("1970-01-01T00:00:00.000000011Z", "41", [20, 30, 40]),
        ("1970-01-01T01:00:00.00000002+01:00", "1970-01-01T00:00:00.000000021Z", [20]),
        ("41", None, []),
        (None, "10", []),
        (None, "11", [10]),
    ],
)
def test_a_window_is_half_open_to_the_nanosecond(
    filled: FactIndex, client: Client, first: str | None, last: str | None, times: list[int]
) -> None:
    bounds = [(name, value) for name, value in (("from", first), ("to", last)) if value is not None]
    answer = client.get("/query", [("capacity_gb", 1), *bounds]).json()
    assert answer["total"]["requests"] == len(times)
    assert answer["total"]["total_input_tokens"] == 100 * len(times)


def test_the_window_is_told_in_both_forms(filled: FactIndex, client: Client) -> None:
    answer = client.get("/query", [("capacity_gb", 1), ("from", "1970-01-01T00:00:00Z"), ("to", 1)]).json()
    assert answer["window"] == {
        "from": "1970-01-01T00:00:00.000000000Z",
        "to": "1970-01-01T00:00:00.000000001Z",
        "from_ns": 0,
        "to_ns": 1,
    }


def test_an_instance_asked_for_is_answered_even_without_requests_in_the_window(
    filled: FactIndex, client: Client
) -> None:
    asked = [("capacity_gb", 1), ("instance_id", "code"), ("instance_id", "chat"), ("instance_id", "code")]
    answer = client.get("/query", [*asked, ("to", 11)]).json()
    assert [(one["instance_id"], one["requests"]) for one in answer["instances"]] == [("chat", 1), ("code", 0)]


def test_block_bytes_charges_every_block(filled: FactIndex, client: Client) -> None:
    answer = client.get("/query", [("capacity_gb", 1), ("block_bytes", 2**29)]).json()
    assert answer["total"]["total_hit_blocks"] == [3]


@pytest.mark.parametrize("capacity", ["1e308", "9e15", "1.7976931348623157e308"])
def test_a_huge_capacity_is_the_ceiling(filled: FactIndex, client: Client, capacity: str) -> None:
    answer = client.get("/query", [("capacity_gb", capacity), ("block_bytes", 1)]).json()
    assert answer["total"]["total_hit_blocks"] == [10]
    assert answer["total"]["capacity_gb"] == [float(capacity)]


@pytest.mark.parametrize("capacity", ["-0.0", "5e-324", "0"])
def test_a_tiny_capacity_holds_nothing(filled: FactIndex, client: Client, capacity: str) -> None:
    assert client.get("/query", [("capacity_gb", capacity)]).json()["total"]["total_hit_blocks"] == [0]


def test_a_thousand_capacities_in_the_order_asked(filled: FactIndex, client: Client) -> None:
    capacities = [step % 7 / 4 for step in range(1000)]
    answer = client.get("/query", [("capacity_gb", capacity) for capacity in capacities]).json()
    assert answer["total"]["capacity_gb"] == capacities
    by_capacity = dict(zip(capacities, answer["total"]["total_hit_blocks"], strict=True))
    assert [by_capacity[step / 4] for step in range(7)] == [0, 1, 3, 5, 7, 7, 8]


def test_lag_and_partitions_without_facts(filled: FactIndex, connect: Callable[..., Client]) -> None:
    idle = ChainKey("litehit.facts", "g1", 1)
    client = connect(filled, lag=lambda: {CHAIN: 3, idle: 5})
    as_of = client.get("/query", [("capacity_gb", 1)]).json()["as_of"]
    assert [(one["partition"], one["next_offset"], one["time"], one["lag"]) for one in as_of] == [
        (0, 107, "1970-01-01T00:00:00.000000040Z", 3),
        (1, 0, None, 5),
    ]


def test_whole_histories_read_no_rows_and_windows_only_what_they_overlap(
    index: FactIndex, segments: Segments, client: Client
) -> None:
    infos = []
    for number in range(3):
        facts = [fact(100 * number, (1, 1)), fact(100 * number + 50, (1, 2))]
        infos.append(segment_of(CHAIN, 2 * number, 2 * number + 2, facts))
        segments.rows[infos[-1]] = rows_of(facts, 2 * number)
        index.published(infos[-1])
    segments.reads.clear()
    assert client.get("/query", [("capacity_gb", 1)]).json()["total"]["total_hit_blocks"] == [9]
    everything = [("from", 0), ("to", 251)]
    assert client.get("/query", [("capacity_gb", 1), *everything]).json()["total"]["total_hit_blocks"] == [9]
    assert segments.reads == []
    middle = [("from", 50), ("to", 150)]
    assert client.get("/query", [("capacity_gb", 1), *middle]).json()["total"]["total_hit_blocks"] == [3]
    assert segments.reads == infos[:2]


def test_the_answer_is_the_documented_model(filled: FactIndex, client: Client) -> None:
    response = client.get("/query", [("capacity_gb", 1), ("from", 15)])
    answer = QueryAnswer.model_validate_json(response.content)
    assert answer.model_dump(mode="json") == json.loads(response.content)
