"""Tables of curves: each group's is the sum of its facts' projections, however tables are made, added and taken off."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.curve_table import CurveTable
from litehit.curves import FlatCurves
from litehit.projector import HitCurveProjector
from schemas.fact import HitCurve
from tests.strategies import curves

GROUPS = 4
CAPACITIES = [*range(40), 2**32, 2**62, 2**63 - 1, -1]
huge_curves = st.sampled_from([((2**61, 2**61),), ((3, 2), (2**62 - 1, 2**62 - 1)), ((1, 2**62 - 1),)])
Row = tuple[int, int, HitCurve]
rows = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 50), curves), max_size=12)
huge_rows = st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 50), curves | huge_curves), max_size=3)


def table_of(facts: list[Row]) -> CurveTable:
    codes = np.array([code for code, _, _ in facts], np.int64)
    tokens = np.array([tokens for _, tokens, _ in facts], np.int64)
    return CurveTable.of(codes, tokens, FlatCurves.from_curves(curve for _, _, curve in facts), GROUPS)


def slow(facts: list[Row]) -> dict[int, tuple[int, ...]]:
    return {
        code: (
            len(own := [fact for fact in facts if fact[0] == code]),
            sum(tokens for _, tokens, _ in own),
            *(sum(HitCurveProjector.project_blocks(curve, one) for _, _, curve in own) for one in CAPACITIES),
        )
        for code in sorted({code for code, _, _ in facts})
    }


def read(table: CurveTable) -> dict[int, tuple[int, ...]]:
    found = np.zeros((GROUPS, len(CAPACITIES)), np.int64)
    table.add_hits(table.codes, np.tile(CAPACITIES, (GROUPS, 1)), found)
    for place, code in enumerate(table.codes.tolist()):
        assert table.curve(place).hits(np.array(CAPACITIES)).tolist() == found[code].tolist()
    counts = zip(table.codes.tolist(), table.requests.tolist(), table.input_tokens.tolist(), strict=True)
    return {code: (requests, tokens, *found[code].tolist()) for code, requests, tokens in counts}


@given(rows)
def test_it_is_the_sum_of_the_projections(facts: list[Row]) -> None:
    assert read(table_of(facts)) == read(table_of(facts).compact()) == slow(facts)


@given(huge_rows)
def test_capacities_of_any_size(facts: list[Row]) -> None:
    # Sums of hits stay below 2**63, as everywhere.
    if sum(run for _, _, curve in facts for _, run in curve) < 2**63:
        assert read(table_of(facts)) == read(table_of(facts).compact()) == slow(facts)
        assert read(table_of(facts) + table_of([])) == slow(facts)


@given(st.lists(rows, max_size=6))
def test_sums_of_tables(parts: list[list[Row]]) -> None:
    together = CurveTable.sum([table_of(facts) for facts in parts])
    assert read(together) == slow([fact for facts in parts for fact in facts])


@given(rows, rows)
def test_equal_facts_give_equal_tables(left: list[Row], right: list[Row]) -> None:
    added, at_once = table_of(left) + table_of(right).compact(), table_of(left + right)
    for column in ("codes", "requests", "input_tokens", "offsets", "capacities", "hits"):
        assert getattr(added, column).tolist() == getattr(at_once, column).tolist()


@given(rows, rows, rows)
def test_what_is_taken_off_in_any_order_leaves_the_rest(kept: list[Row], gone: list[Row], more: list[Row]) -> None:
    taken = table_of(gone).compact().negated()
    assert read(table_of(kept) + table_of(gone) + taken) == slow(kept)
    assert read((table_of(more) + taken) + (table_of(gone) + table_of(kept))) == slow(more + kept)
    assert len(table_of(gone) + taken) == 0


@given(rows, st.data())
def test_some_of_its_groups(facts: list[Row], data: st.DataObject) -> None:
    table, expected = table_of(facts), list(slow(facts).items())
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(table))] * 2)))
    assert read(table.slice(low, high)) == dict(expected[low:high])
    places = sorted(data.draw(st.sets(st.integers(0, max(0, len(table) - 1))))) if len(table) else []
    assert read(table.take(np.array(places, np.int64))) == dict(expected[place] for place in places)


def test_rows_that_are_left_out_and_rows_that_come_twice() -> None:
    table = table_of([(0, 1, ((1, 5),)), (1, 1, ((1, 7),)), (2, 1, ((1, 9),))])
    found = np.zeros((1, 1), np.int64)
    table.add_hits(np.array([0, -1, 0]), np.array([[-1]]), found)
    assert found.tolist() == [[14]]
