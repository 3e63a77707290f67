"""Sums of facts: exact however they are put together, cheap to add to, and never changed by it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from schemas.fact import RequestFact
from service.api.sums import GroupKey, Sums, add_sums, sums_of
from tests.histories import fact, small_facts

CAPACITIES = [-1, 0, 1, 5, 12, 1000]


def slow(facts: list[RequestFact]) -> dict[GroupKey, tuple[int, ...]]:
    groups: dict[GroupKey, list[RequestFact]] = {}
    for one in facts:
        groups.setdefault(GroupKey(one.instance_id, one.block_size_tokens, one.block_bytes), []).append(one)
    return {
        key: (
            len(members),
            sum(one.input_token_len for one in members),
            *(sum(HitCurveProjector.project_blocks(one.hit_curve, c) for one in members) for c in [*CAPACITIES, -1]),
        )
        for key, members in groups.items()
    }


def read(sums: Sums) -> dict[GroupKey, tuple[int, ...]]:
    return {
        key: (group.requests, group.input_tokens, *group.hits(np.array(CAPACITIES)).tolist(), group.ceiling())
        for key, group in sums.items()
    }


@given(st.lists(st.lists(small_facts(), max_size=6), max_size=8))
def test_batches_add_up_to_the_slow_sum_and_stay_as_they_were(batches: list[list[RequestFact]]) -> None:
    parts = [sums_of(FactBatch.from_facts(batch)) for batch in batches]
    total: Sums = {}
    for number, part in enumerate(parts):
        total = add_sums(total, part)
        assert read(total) == slow([one for batch in batches[: number + 1] for one in batch])
    assert [read(part) for part in parts] == [slow(batch) for batch in batches]


@given(st.lists(st.lists(small_facts(), min_size=1, max_size=6), min_size=1, max_size=8))
def test_one_curve_of_all_of_it(batches: list[list[RequestFact]]) -> None:
    total: Sums = {}
    for batch in batches:
        total = add_sums(total, sums_of(FactBatch.from_facts(batch)))
    for group in total.values():
        curve = group.curve()
        assert curve.hits(np.array(CAPACITIES)).tolist() == group.hits(np.array(CAPACITIES)).tolist()
        assert curve.ceiling() == group.ceiling()


def test_layers_stay_few() -> None:
    sums: Sums = {}
    for number in range(1, 600):
        sums = add_sums(sums, sums_of(FactBatch.from_facts([fact(number, (number, 2))])))
        (group,) = sums.values()
        facts = [layer.facts for layer in group.layers]
        assert sum(facts) == number
        assert all(larger > 4 * smaller for larger, smaller in pairwise(facts))
        assert len(facts) <= 1 + math.log(number, 4)
