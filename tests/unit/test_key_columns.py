from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.key_columns import gather_keys


@given(data=st.data())
def test_each_requests_keys_stand_end_to_end(data: st.DataObject) -> None:
    keys = np.arange(20) * 7
    spans = data.draw(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 5)), max_size=6))
    firsts, counts = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    gathered, offsets = gather_keys(keys, firsts, counts)
    assert gathered.tolist() == [key for first, count in spans for key in keys[first : first + count].tolist()]
    assert offsets.tolist() == [0, *np.cumsum(counts).tolist()]


def test_what_has_no_gaps_is_not_copied() -> None:
    keys = np.arange(9)
    gathered, _ = gather_keys(keys, np.array([2, 5, 5]), np.array([3, 0, 4]))
    assert gathered.base is keys
