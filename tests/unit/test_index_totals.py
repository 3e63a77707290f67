"""Totals: exact however they are put together, cheap to add to, exact when something is taken off, never changed."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from schemas.fact import RequestFact
from service.api.groups import GroupKey
from service.api.index_state import IndexState
from service.api.rows import FactRows
from service.api.totals import Totals
from tests.histories import fact, small_facts

CAPACITIES = [-1, 0, 1, 5, 12, 1000]
batches = st.lists(st.lists(small_facts(), min_size=1, max_size=6), max_size=8)


def slow(facts: list[RequestFact]) -> dict[GroupKey, tuple[int, ...]]:
    groups: dict[GroupKey, list[RequestFact]] = {}
    for one in facts:
        groups.setdefault(GroupKey(one.instance_id, one.block_size_tokens, one.block_bytes), []).append(one)
    return {
        key: (
            len(members),
            sum(one.input_token_len for one in members),
            *(sum(HitCurveProjector.project_blocks(one.hit_curve, c) for one in members) for c in CAPACITIES),
        )
        for key, members in groups.items()
    }


def read(totals: Totals) -> dict[GroupKey, tuple[int, ...]]:
    """Off the layers of all groups at once, and off one curve of each group: they must agree."""
    selection = IndexState(totals).everything
    at_once = selection.hits(np.tile(CAPACITIES, (len(selection.keys), 1)))
    read = {}
    for (key, group), hits in zip(selection.groups, at_once.tolist(), strict=True):
        read[key] = (group.requests, group.input_tokens, *hits)
        assert hits == group.hits(np.array(CAPACITIES)).tolist() == group.curve().hits(np.array(CAPACITIES)).tolist()
        assert hits[0] == group.ceiling() == group.curve().ceiling()
    return read


def rows(facts: list[RequestFact]) -> FactRows:
    return FactRows.of(FactBatch.from_facts(facts))


def plus(totals: Totals, facts: FactRows) -> Totals:
    return totals.plus(facts.groups, facts.sums())


@given(batches)
def test_batches_add_up_to_the_slow_sum_and_stay_as_they_were(batches: list[list[RequestFact]]) -> None:
    made = [Totals()]
    for batch in batches:
        made.append(plus(made[-1], rows(batch)))
    for number, totals in enumerate(made):
        assert read(totals) == slow([one for batch in batches[:number] for one in batch])


@given(batches, st.data())
def test_what_is_taken_off_was_never_there(batches: list[list[RequestFact]], data: st.DataObject) -> None:
    totals = Totals()
    for batch in batches:
        totals = plus(totals, rows(batch))
    gone = data.draw(st.sets(st.integers(0, len(batches) - 1))) if batches else set()
    for number in gone:
        facts = rows(batches[number])
        totals = totals.minus(facts.groups, facts.sums())
    left = [one for number, batch in enumerate(batches) if number not in gone for one in batch]
    assert read(totals) == slow(left)
    assert totals.instances() == {one.instance_id for one in left}
    assert [totals.has(name) for name in "abcd"] == [name in totals.instances() for name in "abcd"]


def test_layers_stay_few() -> None:
    totals = Totals()
    for number in range(1, 600):
        totals = plus(totals, rows([fact(number, (number, 2))]))
        sizes = [layer.pieces + len(layer) for layer in totals.layers]
        assert all(larger > 4 * smaller for larger, smaller in pairwise(sizes))
        assert len(sizes) <= 2 + math.log(number, 4)
        assert totals.requests.sum() == number
