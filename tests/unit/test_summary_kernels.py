"""Sums over sums, by row, compiled and over Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.jit import interpreted
from litehit.summary_kernels import COUNTS, RATES, summarise

groups = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 600), st.lists(st.integers(0, 50), min_size=4, max_size=4)), max_size=5
)


@pytest.mark.parametrize("dtype", [np.int64, object])
@given(groups=groups, of_rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=3))
def test_rows_add_up_and_rates_are_sums_over_sums(
    dtype: type, groups: list[tuple[int, int, list[int]]], of_rows: list[tuple[int, int]]
) -> None:
    numbers = [(row, worth, np.cumsum(hits).tolist()) for row, worth, hits in groups]
    hits: Any = np.array([hits for *_, hits in numbers], dtype).reshape(len(numbers), 4)
    worths: Any = np.array([worth for _, worth, _ in numbers], dtype)
    input_tokens, ceiling_tokens = np.array(of_rows, dtype).T.copy()
    counts: Any = np.zeros((3, COUNTS * 2), dtype)
    rates = np.empty((3, RATES * 2))
    run: Any = summarise if dtype is np.int64 else interpreted(summarise)
    run(np.array([row for row, *_ in numbers], np.int64), hits, worths, input_tokens, ceiling_tokens, counts, rates)
    for row, (tokens, ceiling) in enumerate(of_rows):
        own = [(worth, hits) for group, worth, hits in numbers if row in (0, group)]
        for slot in range(2):
            blocks, more = (sum(hits[place] for _, hits in own) for place in (slot, 2 + slot))
            hit, hit_with_more = (sum(worth * hits[place] for worth, hits in own) for place in (slot, 2 + slot))
            gained = hit_with_more - hit
            assert counts[row, slot::2].tolist() == [blocks, hit, more - blocks, gained]
            of_ceiling = hit / ceiling if ceiling else 1.0
            assert rates[row, slot::2].tolist() == [hit / max(tokens, 1), of_ceiling, gained / max(tokens, 1)]
