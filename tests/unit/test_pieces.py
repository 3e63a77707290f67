"""Pieces are copied in the order in which they are named, whatever their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.pieces import gather


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_pieces_stand_side_by_side(dtype: Any) -> None:
    source = np.arange(200).astype(dtype)

    @given(pieces=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 50)), max_size=6))
    def check(pieces: list[tuple[int, int]]) -> None:
        bounds = np.cumsum([0, *(length for _, length in pieces)])
        gathered = np.zeros(bounds[-1], dtype)
        gather(source, np.array([first for first, _ in pieces], np.int64), bounds, gathered)
        assert gathered.tolist() == [value for first, length in pieces for value in range(first, first + length)]

    check()
