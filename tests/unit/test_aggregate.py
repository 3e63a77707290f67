from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit import aggregate
from litehit.aggregate import AggregateCurve
from litehit.curves import FlatCurves, Int64Array
from litehit.errors import StateError
from litehit.projector import HitCurveProjector
from schemas.fact import HitCurve
from tests.strategies import curves

CAPACITIES = [*range(80), 10**18, 2**63 - 1, -1]

batches = st.lists(st.lists(curves, max_size=4), max_size=6)


def aggregate_of(listed: list[HitCurve]) -> AggregateCurve:
    total = AggregateCurve()
    total.add(FlatCurves.from_curves(listed))
    return total


def hits_of(total: AggregateCurve, *capacities: int) -> list[int]:
    hits: list[int] = total.hits(np.array(capacities, np.int64)).tolist()
    return hits


def brute_force(listed: list[HitCurve], capacity: int) -> int:
    return sum(HitCurveProjector.project_blocks(curve, capacity) for curve in listed)


@pytest.fixture(params=[0, 1 << 16], ids=["fold at once", "fold late"], autouse=True)
def _fold_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate, "_FOLD_AT", request.param)


def test_it_is_the_sum_of_the_projections() -> None:
    @given(batches=batches)
    def check(batches: list[list[HitCurve]]) -> None:
        total = AggregateCurve()
        for listed in batches:
            total.add(FlatCurves.from_curves(listed))
        everything = [curve for listed in batches for curve in listed]
        assert hits_of(total, *CAPACITIES) == [brute_force(everything, capacity) for capacity in CAPACITIES]
        assert total.ceiling() == brute_force(everything, -1)

    check()


def test_merging_equals_adding() -> None:
    @given(left=st.lists(curves, max_size=5), right=st.lists(curves, max_size=5))
    def check(left: list[HitCurve], right: list[HitCurve]) -> None:
        merged, other = aggregate_of(left), aggregate_of(right)
        merged.merge(other)
        assert hits_of(merged, *CAPACITIES) == [brute_force(left + right, capacity) for capacity in CAPACITIES]
        assert hits_of(other, *CAPACITIES) == [brute_force(right, capacity) for capacity in CAPACITIES]

    check()


def test_the_inverse_is_the_smallest_capacity() -> None:
    @given(listed=st.lists(curves, max_size=6))
    def check(listed: list[HitCurve]) -> None:
        total = aggregate_of(listed)
        for hits in range(total.ceiling() + 1):
            capacity = total.smallest_capacity(hits)
            assert capacity is not None
            assert hits_of(total, capacity)[0] >= hits
            assert capacity == 0 or hits_of(total, capacity - 1)[0] < hits
        assert total.smallest_capacity(total.ceiling() + 1) is None

    check()


def test_between_breakpoints_hits_grow_linearly() -> None:
    @given(listed=st.lists(curves, max_size=6))
    def check(listed: list[HitCurve]) -> None:
        total = aggregate_of(listed)
        capacities, hits = total.breakpoints()
        assert np.all(np.diff(capacities) > 0)
        for capacity in range(80):
            known = np.interp(capacity, capacities, hits) if len(capacities) else 0
            assert hits_of(total, capacity)[0] == known

    check()


def test_a_copy_goes_its_own_way() -> None:
    original = aggregate_of([((1, 2),)])
    twin = original.copy()
    twin.add(FlatCurves.from_curves([((1, 5),)]))
    assert (original.ceiling(), twin.ceiling()) == (2, 7)
    original.add(FlatCurves.from_curves([((3, 1),)]))
    assert (original.ceiling(), twin.ceiling()) == (3, 7)


def test_a_state_round_trip_changes_nothing() -> None:
    @given(before=st.lists(curves, max_size=5), after=st.lists(curves, max_size=3))
    def check(before: list[HitCurve], after: list[HitCurve]) -> None:
        state = aggregate_of(before).state()
        restored = AggregateCurve.from_state(state)
        assert not any(np.shares_memory(array, own) for array in state.values() for own in restored.state().values())
        restored.add(FlatCurves.from_curves(after))
        assert hits_of(restored, *CAPACITIES) == [brute_force(before + after, capacity) for capacity in CAPACITIES]
        assert {name: part.tolist() for name, part in restored.state().items()} == {
            name: part.tolist() for name, part in aggregate_of(before + after).state().items()
        }

    check()


@pytest.mark.parametrize(
    ("capacities", "slopes", "message"),
    [
        ([1, 3], [1.0, 0.0], "slopes is 1-d float64"),
        ([1, 3], [1], "slopes has 1 elements for 2 capacities"),
        ([3, 1], [1, 0], "do not ascend"),
        ([3, 3], [1, 0], "do not ascend"),
        ([0, 3], [1, 0], "at least 1"),
        ([1, 3], [-1, 0], "negative"),
        ([1, 3], [2, 1], "end with 0"),
        ([1, 3, 5], [2, 2, 0], "do not change"),
        ([1, 3], [2**62, 0], "more hits than there can be"),
    ],
)
def test_a_damaged_state_is_refused(capacities: list[int], slopes: list[int], message: str) -> None:
    with pytest.raises(StateError, match=message):
        AggregateCurve.from_state({"capacities": np.array(capacities), "slopes": np.array(slopes)})


@pytest.mark.parametrize("name", ["capacities", "slopes"])
def test_a_state_without_an_array_is_refused(name: str) -> None:
    state: dict[str, Int64Array] = aggregate_of([((1, 2),)]).state()
    del state[name]
    with pytest.raises(StateError, match=f"{name} is missing"):
        AggregateCurve.from_state(state)


def test_an_empty_aggregate_has_no_hits() -> None:
    total = aggregate_of([(), ()])
    assert (hits_of(total, 0, 5, -1), total.ceiling()) == ([0, 0, 0], 0)
    assert hits_of(total) == hits_of(aggregate_of([((1, 2),)])) == []
    assert total.smallest_capacity(0) == 0
    assert total.smallest_capacity(1) is None
    assert [len(part) for part in total.breakpoints()] == [0, 0]


def test_memory_follows_the_breakpoints_and_not_the_curves() -> None:
    total = AggregateCurve()
    for _ in range(200):
        total.add(FlatCurves.from_curves([((1, 100), (500, 7))] * 1000))
    capacities, hits = total.breakpoints()
    assert capacities.tolist() == [0, 100, 499, 506]
    assert hits.tolist() == [0, 20_000_000, 20_000_000, 21_400_000]
