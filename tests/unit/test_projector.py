from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.core import LiteHit
from litehit.curves import FlatCurves
from litehit.errors import CapacityError
from litehit.projector import INFINITE, HitCurveProjector
from schemas.fact import HitCurve
from tests.strategies import curves

GB = 1024**3


@pytest.mark.parametrize(
    ("capacity", "hits"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 3), (6, 3), (7, 4), (8, 4), (10**30, 4), (-1, 4)]
)
def test_segment_boundaries(capacity: int, hits: int) -> None:
    assert HitCurveProjector.project_blocks(((2, 3), (7, 1)), capacity) == hits


def test_bytes_are_floored_once() -> None:
    curve = ((1, 2), (4, 1))
    assert [HitCurveProjector.project_bytes(curve, size, 1024) for size in (1023, 1024, 2048, 4095, 4096, -1)] == [
        0,
        1,
        2,
        2,
        3,
        3,
    ]


def test_worked_example_totals() -> None:
    core = LiteHit()
    requests = [([1, 2, 3], 13), ([1, 2, 4], 12), ([1, 2, 3], 13), ([1, 5], 8), ([1, 5], 8)]
    listed = [core.process_request(keys) for keys, _ in requests]
    tokens = sum(length for _, length in requests)
    assert tokens == 54
    for capacity_bytes, hits in ((2048, [0, 2, 2, 1, 2]), (3072, [0, 2, 2, 1, 2]), (-1, [0, 2, 3, 1, 2])):
        assert [HitCurveProjector.project_bytes(curve, capacity_bytes, 1024) for curve in listed] == hits


def test_a_capacity_in_gb_is_binary_and_floored_to_whole_bytes() -> None:
    assert HitCurveProjector.capacity_bytes(8) == 8 * GB
    assert HitCurveProjector.capacity_bytes(0.1) == 107374182
    assert HitCurveProjector.capacity_bytes(2.0**-30) == 1
    assert HitCurveProjector.capacity_bytes(0.99 * 2.0**-30) == 0
    assert HitCurveProjector.capacity_bytes(-0.001) == INFINITE
    assert HitCurveProjector.capacity_bytes(1e308) == int(1e308) * GB


@pytest.mark.parametrize("capacity", [math.nan, math.inf, -math.inf])
def test_a_capacity_that_is_no_finite_number_is_refused(capacity: float) -> None:
    with pytest.raises(CapacityError, match=f"capacity_gb {capacity}"):
        HitCurveProjector.capacity_bytes(capacity)


def test_gb_of_blocks_is_the_inverse() -> None:
    for blocks in (0, 1, 15, 253, 64854):
        for block_bytes in (1, 1000, 2**20):
            gb = HitCurveProjector.capacity_gb(blocks, block_bytes)
            size = HitCurveProjector.capacity_bytes(gb)
            assert HitCurveProjector.capacity_blocks(size, block_bytes) == blocks


@given(listed=st.lists(curves, max_size=6), capacity=st.integers(-2, 80) | st.just(10**30), charge=st.integers(1, 5))
def test_a_batch_equals_its_curves_one_by_one(listed: list[HitCurve], capacity: int, charge: int) -> None:
    flat = FlatCurves.from_curves(listed)
    one_by_one = [HitCurveProjector.project_blocks(curve, capacity) for curve in listed]
    assert HitCurveProjector.project_blocks_batch(flat, capacity).tolist() == one_by_one
    assert HitCurveProjector.project_infinite_batch(flat).tolist() == [
        HitCurveProjector.project_infinite(curve) for curve in listed
    ]
    assert HitCurveProjector.project_bytes_batch(flat, capacity, charge).tolist() == [
        HitCurveProjector.project_bytes(curve, capacity, charge) for curve in listed
    ]


@given(curve=curves, capacity=st.integers(0, 80))
def test_it_counts_the_thresholds_that_fit(curve: HitCurve, capacity: int) -> None:
    thresholds = [start + i for start, run in curve for i in range(run)]
    assert HitCurveProjector.project_blocks(curve, capacity) == sum(t <= capacity for t in thresholds)


@given(
    listed=st.lists(curves, max_size=3),
    capacities=st.lists(st.integers(-2, 400) | st.just(10**30), max_size=4),
    charge=st.integers(1, 5),
)
def test_capacities_as_an_array_give_the_same_hits(listed: list[HitCurve], capacities: list[int], charge: int) -> None:
    blocks = HitCurveProjector.capacities_blocks(capacities, charge)
    assert blocks.dtype == np.int64
    for capacity, cut in zip(capacities, blocks.tolist(), strict=True):
        for curve in listed:
            exact = HitCurveProjector.project_bytes(curve, capacity, charge)
            assert HitCurveProjector.project_blocks(curve, cut) == exact


@pytest.mark.parametrize("capacities", [[], [0, 1, 2**30, 2**53], [1, 2**53 + 1, 2**62 - 1], [3 * 2**70 + 1]])
def test_gb_of_many_bytes_hold_them(capacities: list[int]) -> None:
    dtype = np.int64 if max(capacities, default=0) < 2**63 else object
    found = HitCurveProjector.gb_of_many_bytes(np.array(capacities, dtype)).tolist()
    assert found == [HitCurveProjector.gb_of_bytes(one) for one in capacities]
    assert all(HitCurveProjector.capacity_bytes(gb) >= one for gb, one in zip(found, capacities, strict=True))
