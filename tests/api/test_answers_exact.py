"""Every answer of `/curve` and `/capacity` is the slow sum, capacity by capacity, over the facts that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from litehit.projector import HitCurveProjector
from schemas.answers import CapacityAnswer, CurveAnswer
from schemas.fact import RequestFact
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.windows import TimeWindow
from tests.api_doubles import Client, Segments
from tests.histories import CHAINS, rows_of, slow_choice, slow_hits, small_facts, windows

histories = st.lists(st.tuples(st.sampled_from(CHAINS), st.lists(small_facts(), min_size=1, max_size=5)), max_size=5)
charges = st.none() | st.sampled_from([1, 7, 2**28, 2**63 - 1])


def client_over(history: Sequence[tuple[Any, Sequence[RequestFact]]]) -> Client:
    index = FactIndex(Segments(), window_rows=1000)
    index.loaded()
    ends = dict.fromkeys(CHAINS, 0)
    for chain, facts in history:
        index.appended(chain, rows_of(facts, ends[chain]))
        ends[chain] += len(facts)
    return Client(create_app(index, registry=CollectorRegistry()))


def ask(
    history: Sequence[tuple[Any, Sequence[RequestFact]]],
    path: str,
    window: TimeWindow,
    block_bytes: int | None,
    *parameters: tuple[str, Any],
) -> dict[str, Any]:
    asked = [("from", window.from_ns), ("to", window.to_ns), ("block_bytes", block_bytes), *parameters]
    client = client_over(history)
    try:
        response = client.get(path, [(name, value) for name, value in asked if value is not None])
    finally:
        client.close()
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def answers_with_facts(
    answer: dict[str, Any], history: Sequence[tuple[Any, Sequence[RequestFact]]], window: TimeWindow
) -> Iterator[tuple[dict[str, Any], list[RequestFact]]]:
    """Each part of an answer with the facts it is about."""
    facts = slow_choice([fact for _, listed in history for fact in listed], window, [])
    yield answer["total"], facts
    assert [one["instance_id"] for one in answer["instances"]] == sorted({fact.instance_id for fact in facts})
    for one in answer["instances"]:
        yield one, [fact for fact in facts if fact.instance_id == one["instance_id"]]


def check_counts(part: dict[str, Any], facts: Sequence[RequestFact]) -> None:
    (blocks,), (tokens,) = slow_hits(facts, [-1], None)
    everything = sum(fact.input_token_len for fact in facts)
    assert (part["requests"], part["total_input_tokens"]) == (len(facts), everything)
    assert part["ceiling"] == {
        "hit_blocks": blocks,
        "hit_tokens": tokens,
        "hit_rate": tokens / everything if everything else 0.0,
    }


@given(histories, windows(), charges, st.none() | st.integers(2, 12))
def test_a_curve_is_exact_at_its_points_and_as_far_off_between_them_as_it_says(
    history: Any, window: TimeWindow, block_bytes: int | None, points: int | None
) -> None:
    answer = ask(history, "/curve", window, block_bytes, ("points", points))
    CurveAnswer.model_validate(answer)
    for part, facts in answers_with_facts(answer, history, window):
        check_counts(part, facts)
        capacities = part["capacity_bytes"]
        unit = part["unit_bytes"]
        blocks, tokens = slow_hits(facts, capacities, block_bytes)
        assert (part["hit_blocks"], part["hit_tokens"]) == (blocks, tokens)
        assert part["hit_rates"] == [hit / part["total_input_tokens"] for hit in tokens]
        in_bytes = [HitCurveProjector.capacity_bytes(gb) for gb in part["capacity_gb"]]
        assert slow_hits(facts, in_bytes, block_bytes)[0] == blocks
        charge = {block_bytes or fact.block_bytes for fact in facts}
        assert part["block_bytes"] == (charge.pop() if len(charge) == 1 else None)
        if part["block_bytes"] is None:
            assert part["capacity_blocks"] is None
        else:
            assert [count * part["block_bytes"] for count in part["capacity_blocks"]] == capacities
        assert capacities == sorted(set(capacities))
        assert all(capacity % unit == 0 for capacity in capacities)
        assert points is None or len(capacities) <= points
        if not capacities:
            assert part["ceiling"]["hit_blocks"] == 0
            continue
        assert (blocks[0], blocks[-1]) == (0, part["ceiling"]["hit_blocks"])
        check_between(part, facts, block_bytes)
        if points is None and part["block_bytes"] is not None:
            assert part["largest_error"]["hit_blocks"] == part["largest_error"]["hit_tokens"] == 0


def check_between(part: dict[str, Any], facts: Sequence[RequestFact], block_bytes: int | None) -> None:
    unit, errors = part["unit_bytes"], part["largest_error"]
    tokens_in_all = part["total_input_tokens"]
    shown = zip(part["capacity_bytes"], part["hit_blocks"], part["hit_tokens"], strict=True)
    for (low, low_blocks, low_tokens), (high, high_blocks, high_tokens) in pairwise(shown):
        assert (high_tokens - low_tokens) / tokens_in_all <= errors["rise_hit_rate"]
        steps = (high - low) // unit
        # Hits change at multiples of a charge, or, between different ones, so far apart that a few places tell.
        places = range(1, steps) if steps <= 64 else [1, 2, steps // 3, steps // 2, steps - 2, steps - 1]
        between = [low + place * unit for place in places]
        for capacity, blocks, tokens in zip(between, *slow_hits(facts, between, block_bytes), strict=True):
            along = Fraction(capacity - low, high - low)
            assert abs(low_blocks + along * (high_blocks - low_blocks) - blocks) <= errors["hit_blocks"]
            assert abs(low_tokens + along * (high_tokens - low_tokens) - tokens) <= errors["hit_tokens"]
    assert errors["hit_rate"] == errors["hit_tokens"] / tokens_in_all


@given(
    histories,
    windows(),
    charges,
    st.lists(st.sampled_from(["0", "0.1", ".3", "0.5", "1e-9", "1"]), max_size=4),
    st.lists(st.sampled_from(["0", ".6", "0.95", "0.995", "1"]), min_size=1, max_size=4),
)
def test_a_smallest_capacity_is_enough_and_a_byte_less_is_not(
    history: Any, window: TimeWindow, block_bytes: int | None, rates: list[str], shares: list[str]
) -> None:
    asked = [*(("hit_rate", one) for one in rates), *(("of_ceiling", one) for one in shares)]
    answer = ask(history, "/capacity", window, block_bytes, *asked)
    CapacityAnswer.model_validate(answer)
    for part, facts in answers_with_facts(answer, history, window):
        check_counts(part, facts)
        ceiling, everything = part["ceiling"]["hit_tokens"], part["total_input_tokens"]
        # Without tokens there is no rate but 0.
        wanted = [Fraction(one) * everything if everything else Fraction(one) for one in rates]
        wanted += [Fraction(one) * ceiling for one in shares]
        assert [one["hit_rate_wanted"] for one in part["capacities"]] == [*map(float, rates), *[None] * len(shares)]
        for one, tokens_wanted in zip(part["capacities"], wanted, strict=True):
            assert one["reachable"] == (bool(facts) and ceiling >= tokens_wanted)
            if not one["reachable"]:
                assert one["capacity_bytes"] is one["capacity_gb"] is one["hit_rate"] is None
                continue
            capacity = one["capacity_bytes"]
            (blocks,), (tokens,) = slow_hits(facts, [capacity], block_bytes)
            assert (one["hit_blocks"], one["hit_tokens"]) == (blocks, tokens)
            assert tokens >= tokens_wanted
            assert one["hit_rate"] == (tokens / everything if everything else 0.0)
            assert one["of_ceiling"] == (tokens / ceiling if ceiling else 1.0)
            assert HitCurveProjector.capacity_bytes(one["capacity_gb"]) >= capacity
            if capacity:
                assert slow_hits(facts, [capacity - 1], block_bytes)[1][0] < tokens_wanted
            if part["block_bytes"] is not None:
                assert one["capacity_blocks"] * part["block_bytes"] == capacity
