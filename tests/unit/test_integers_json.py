from __future__ import annotations

import json

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from service.integers_json import integers_json


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1)))
@example([])
@example([-(2**63)] * 100)
def test_it_is_the_compact_json_of_the_list(values: list[int]) -> None:
    assert integers_json(np.array(values, np.int64)) == json.dumps(values, separators=(",", ":")).encode()
