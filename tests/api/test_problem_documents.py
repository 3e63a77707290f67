"""Every error is a problem document that names the parameter, its value and what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from schemas.answers import Problem
from service.api.index import FactIndex
from service.api.rows import FactRows
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey, SegmentInfo
from tests.api_doubles import Client, Segments
from tests.histories import fact, rows_of, segment_of

CHAIN = ChainKey("litehit.facts", "g1", 0)


def problem_of(response: Any, status: int) -> Problem:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate_json(response.content)
    assert problem.status == status
    return problem


@pytest.mark.parametrize(
    ("query", "parameter", "value", "says"),
    [
        ("", "capacity_gb", None, "is missing; send a finite number of binary GB"),
        ("capacity_gb=1&capacity=8", "capacity", "8", "did you mean capacity_gb?"),
        ("capacity_gb=8&window=1d", "window", "1d", "it takes block_bytes, capacity_gb, from, instance_id, to"),
        ("capacity_gb=nan", "capacity_gb", "nan", "finite number"),
        ("capacity_gb=1&capacity_gb=inf", "capacity_gb", "inf", "finite number"),
        ("capacity_gb=-inf", "capacity_gb", "-inf", "finite number"),
        ("capacity_gb=1e999", "capacity_gb", "1e999", "finite number"),
        ("capacity_gb=8GB", "capacity_gb", "8GB", "number"),
        ("capacity_gb=", "capacity_gb", "", "number"),
        ("&".join(["capacity_gb=1"] * 1001), "capacity_gb", "['1', '1'", "at most 1000 items"),
        ("capacity_gb=1&" + "&".join(["instance_id=a"] * 1001), "instance_id", "['a', 'a'", "at most 1000 items"),
        ("capacity_gb=1&instance_id=", "instance_id", "", "at least 1 character"),
        ("capacity_gb=1&block_bytes=0", "block_bytes", "0", "greater than or equal to 1"),
        ("capacity_gb=1&block_bytes=1.5", "block_bytes", "1.5", "integer"),
        ("capacity_gb=1&block_bytes=9223372036854775808", "block_bytes", "9223372036854775808", "less than"),
        ("capacity_gb=1&block_bytes=1&block_bytes=2", "block_bytes", "1, 2", "given 2 times; send it once"),
        ("capacity_gb=1&from=1&from=2", "from", "1, 2", "given 2 times; send it once"),
        (
            "capacity_gb=1&from=yesterday",
            "from",
            "yesterday",
            "from 'yesterday' is neither integer nanoseconds nor",
        ),
        ("capacity_gb=1&to=", "to", "", "send for example 2025-01-31T09:30:00.123456789Z"),
        ("capacity_gb=1&to=2025-01-31T09:30:00+01:00", "to", "2025-01-31T09:30:00 01:00", "%2B"),
        ("capacity_gb=1&to=9223372036854775808", "to", "9223372036854775808", "outside 64-bit nanoseconds"),
        ("capacity_gb=1&from=5&to=5", "from", "5", "is not before to 5"),
        ("capacity_gb=1&from=6&to=5", "from", "6", "is not before to 5"),
    ],
)
def test_a_parameter_that_cant_be_used(
    client: Client, query: str, parameter: str, value: str | None, says: str
) -> None:
    problem = problem_of(client.request("GET", f"/query?{query}"), 422)
    assert problem.type == "urn:litehit:problem:invalid-parameter"
    assert [one.parameter for one in problem.errors] == [parameter]
    sent = problem.errors[0].value
    assert sent == value or (sent is not None and value is not None and sent.startswith(value) and sent[-1] == "…")
    assert parameter in problem.detail
    assert says in problem.detail
    assert problem.instance.startswith(f"/query?{query}"[:1000].rstrip("?"))


def test_every_wrong_parameter_is_named(client: Client) -> None:
    problem = problem_of(client.request("GET", "/query?capacity_gb=1&capacity_gb=x&capacity_gb=y&to=z&q=1"), 422)
    assert [(one.parameter, one.value) for one in problem.errors] == [
        ("to", "z"),
        ("capacity_gb", "x"),
        ("capacity_gb", "y"),
        ("q", "1"),
    ]
    assert all(one.detail in problem.detail for one in problem.errors)


def test_a_long_value_is_cut(client: Client) -> None:
    problem = problem_of(client.request("GET", f"/query?capacity_gb={'x' * 5000}"), 422)
    assert len(problem.detail) < 1000
    assert len(problem.instance) <= 1001


def test_an_instance_without_facts(index: FactIndex, client: Client) -> None:
    index.appended(CHAIN, rows_of([fact(1, instance="qwen3-chat")], 0))
    asked = [("capacity_gb", 1), ("instance_id", "qwen3-chat"), ("instance_id", "qwen3-caht"), ("instance_id", "x")]
    problem = problem_of(client.get("/query", asked), 404)
    assert problem.type == "urn:litehit:problem:unknown-instance"
    assert [(one.parameter, one.value) for one in problem.errors] == [
        ("instance_id", "qwen3-caht"),
        ("instance_id", "x"),
    ]
    assert "did you mean qwen3-chat?" in problem.detail


def test_an_index_that_is_loading(segments: Segments, connect: Callable[..., Client]) -> None:
    index = FactIndex(segments, window_rows=1)
    index.loading_at(3, 120)
    response = connect(index).get("/query", [("capacity_gb", 1)])
    problem = problem_of(response, 503)
    assert "3 of 120 segments" in problem.detail
    assert response.headers["retry-after"] == "1"


def test_a_window_whose_edges_lie_among_too_many_rows(index: FactIndex, segments: Segments, client: Client) -> None:
    # Both the rows inside and those outside the window are more than one call may read.
    facts = [fact(time) for time in range(2600)]
    info = segment_of(CHAIN, 0, 2600, facts)
    segments.rows[info] = rows_of(facts, 0)
    index.published(info)
    segments.reads.clear()
    problem = problem_of(client.get("/query", [("capacity_gb", 1), ("from", 600), ("to", 2000)]), 422)
    assert problem.type == "urn:litehit:problem:window-too-large"
    assert [(one.parameter, one.value) for one in problem.errors] == [("from", "600"), ("to", "2000")]
    assert "1,200" in problem.detail
    assert "1,000" in problem.detail
    assert segments.reads == []


def test_curves_of_too_many_pieces(index: FactIndex, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.api.index.WINDOW_PIECES", 3)
    index.appended(CHAIN, rows_of([fact(1, (1, 1), (5, 1)), fact(2, (1, 1), (7, 1))], 0))
    problem = problem_of(client.get("/curve", [("from", 2), ("points", 9)]), 422)
    assert problem.type == "urn:litehit:problem:window-too-large"
    assert "4 pieces" in problem.detail
    assert client.get("/curve", [("points", 9)]).status_code == 200
    assert client.get("/query", [("capacity_gb", 1), ("from", 2)]).status_code == 200


def test_a_segment_that_is_gone(index: FactIndex, segments: Segments, client: Client) -> None:
    facts = [fact(1), fact(2), fact(3)]
    info = segment_of(CHAIN, 0, 3, facts)
    segments.rows[info] = rows_of(facts, 0)
    index.published(info)
    del segments.rows[info]
    problem = problem_of(client.get("/query", [("capacity_gb", 1), ("from", 2)]), 503)
    assert problem.type == "urn:litehit:problem:store-unusable"
    assert info.path in problem.detail
    assert client.get("/query", [("capacity_gb", 1)]).status_code == 200


def test_too_many_windows_at_once(connect: Callable[..., Client]) -> None:
    facts = [fact(1), fact(2)]
    may_read, reading = threading.Event(), threading.Event()

    class SlowSegments(Segments):
        def read(self, info: SegmentInfo, places: Sequence[int]) -> Iterator[FactRows]:
            reading.set()
            assert may_read.wait(60)
            yield from super().read(info, places)

    segments, info = SlowSegments(), segment_of(CHAIN, 0, 2, facts)
    segments.rows[info] = rows_of(facts, 0)
    index = FactIndex(segments, window_rows=10, window_calls=1, window_queue=0)
    index.loaded()
    index.appended(CHAIN, rows_of(facts, 0))
    index.published(info)  # summed from the tail, not read
    first: list[int] = []
    busy = threading.Thread(target=lambda: first.append(len(index.select(TimeWindow(2), None).groups)), daemon=True)
    busy.start()
    assert reading.wait(60)
    client = connect(index)
    response = client.get("/query", [("capacity_gb", 1), ("from", 2)])
    assert problem_of(response, 429).type == "urn:litehit:problem:too-many-calls"
    assert response.headers["retry-after"] == "1"
    may_read.set()
    busy.join(60)
    assert first == [1]
    assert client.get("/query", [("capacity_gb", 1), ("from", 2)]).json()["total"]["requests"] == 1


def test_what_is_no_call(client: Client) -> None:
    assert "/docs" in problem_of(client.get("/nothing"), 404).detail


def test_a_wrong_method(client: Client) -> None:
    response = client.request("POST", "/query")
    assert "use GET" in problem_of(response, 405).detail
    assert response.headers["allow"] == "GET, HEAD"


def test_a_defect_is_answered_and_keeps_its_details_to_the_log(connect: Callable[..., Client]) -> None:
    def broken() -> dict[ChainKey, int]:
        raise RuntimeError("secret")

    index = FactIndex(Segments(), window_rows=1)
    index.loaded()
    problem = problem_of(connect(index, lag=broken).get("/query", [("capacity_gb", 1)]), 500)
    assert "secret" not in problem.model_dump_json()
    assert "log" in problem.detail


def test_a_window_in_seconds_or_milliseconds_is_told_rather_than_empty(index: FactIndex, client: Client) -> None:
    asked = [("capacity_gb", 1), ("from", "1738315800"), ("to", "1738315801000")]
    assert client.get("/query", asked).status_code == 200  # nothing is known yet that it could lie before
    index.appended(CHAIN, rows_of([fact(1_738_315_800_500_000_000, (1, 2))], 0))
    problem = problem_of(client.get("/query", asked), 422)
    assert [(one.parameter, one.value) for one in problem.errors] == [("from", "1738315800"), ("to", "1738315801000")]
    assert "looks like seconds since the epoch, but integers are nanoseconds" in problem.errors[0].detail
    assert "for 2025-01-31T09:30:01.000000000Z send 1738315801000000000" in problem.errors[1].detail
    index.appended(CHAIN, rows_of([fact(1_738_315_800, (1, 2))], 1))
    assert client.get("/query", asked).json()["total"]["requests"] == 1
