from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.curves import FlatCurves
from schemas.fact import HitCurve
from tests.strategies import curves


@given(listed=st.lists(curves, max_size=8), cut=st.integers(0, 8), data=st.data())
def test_flat_curves_are_a_list_of_curves(listed: list[HitCurve], cut: int, data: st.DataObject) -> None:
    flat = FlatCurves.from_curves(listed)
    assert len(flat) == len(listed)
    assert list(flat) == listed
    assert [flat[i] for i in range(-len(flat), len(flat))] == listed + listed
    parts = [FlatCurves.from_curves(part) for part in (listed[:cut], listed[cut:])]
    assert list(FlatCurves.concatenate(parts)) == listed
    rows = data.draw(st.lists(st.integers(0, len(listed) - 1), max_size=6)) if listed else []
    assert list(flat.select(np.array(rows, np.int64))) == [listed[row] for row in rows]
    mask = np.array([len(curve) > 1 for curve in listed], bool)
    assert list(flat.select(mask)) == [curve for curve in listed if len(curve) > 1]


def test_nothing_concatenated_is_no_curve() -> None:
    assert len(FlatCurves.concatenate([])) == 0


@pytest.mark.parametrize("index", [1, -2])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"curve {index} of 1"):
        FlatCurves.from_curves([((1, 1),)])[index]
