from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.request import Request
from litehit.window_requests import WindowRequests

requests = st.builds(
    Request,
    instance_id=st.sampled_from(["a", "b", "c"]),
    trace_id=st.text(max_size=3),
    timestamp_ns=st.integers(-(2**63), 2**63 - 1),
    block_keys=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda keys: np.array(keys, np.int64)),
    input_token_len=st.integers(-1, 2**63 - 1),
    trace_block_size_tokens=st.one_of(st.none(), st.integers(1, 2**63 - 1)),
    keys_rounded_up=st.booleans(),
)
listed = st.lists(st.tuples(st.integers(0, 2**40), requests), max_size=8)


def plain(numbered: Any) -> list[tuple[Any, ...]]:
    return [(number, *request._replace(block_keys=request.block_keys.tolist())) for number, request in numbered]


def columns(numbered: list[tuple[int, Request]]) -> WindowRequests:
    return WindowRequests.from_requests([number for number, _ in numbered], [request for _, request in numbered])


@given(numbered=listed, data=st.data())
def test_requests_come_back_from_their_columns(numbered: list[tuple[int, Request]], data: st.DataObject) -> None:
    made = columns(numbered)
    assert len(made) == len(numbered)
    assert plain(made.requests()) == plain(numbered)
    rows = data.draw(st.lists(st.sampled_from(range(len(numbered))))) if numbered else []
    assert plain(made.select(np.array(rows, np.int64)).requests()) == plain(numbered[row] for row in rows)


@given(numbered=listed, share=st.randoms())
def test_parts_are_merged_by_their_places(numbered: list[tuple[int, Request]], share: Any) -> None:
    first = [share.random() < 0.5 for _ in numbered]
    own, other = ([place for place, is_first in enumerate(first) if is_first == which] for which in (True, False))
    merged = columns([numbered[place] for place in own]).merge(
        columns([numbered[place] for place in other]), np.array(own, np.int64), np.array(other, np.int64)
    )
    assert plain(merged.requests()) == plain(numbered)
    rows = {instance_id: rows.tolist() for instance_id, rows in merged.by_instance()}
    assert rows == {
        instance_id: [row for row, (_, request) in enumerate(numbered) if request.instance_id == instance_id]
        for instance_id in {request.instance_id for _, request in numbered}
    }
