"""Hypothesis strategies for requests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from litehit.request import Request
from schemas.fact import HitCurve

Requests = list[list[int]]


@st.composite
def contract_requests(draw: st.DrawFn, max_requests: int = 25) -> Requests:
    """Requests that obey the prefix contract: paths from the root of a growing tree, a key for each node.

    The keys ascend in order of first sight, or do so no longer from some block on, or never.
    """
    swaps = draw(st.sampled_from((0, 0, 1, 16, 127)))
    children: dict[tuple[int, int], int] = {}
    requests: Requests = []
    for branches in draw(st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=max_requests)):
        node, path = 0, []
        for branch in branches:
            node = children.setdefault((node, branch), len(children) + 1)
            path.append(node ^ swaps)
        requests.append(path)
    return requests


arbitrary_requests = st.lists(st.lists(st.integers(-3, 9), max_size=10), max_size=25)
"""Requests of few keys in any order, repeats inside a request included."""

steps = st.lists(st.integers(-2, 5), min_size=25, max_size=25)
"""Time steps between requests; some go back."""


@st.composite
def _curve(draw: st.DrawFn) -> HitCurve:
    segments: list[tuple[int, int]] = []
    last = -1  # a first segment may start at 1
    for gap, run in draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=5)):
        start = last + 1 + gap
        segments.append((start, run))
        last = start + run - 1
    return tuple(segments)


curves = _curve()
"""Canonical hit curves of up to five segments."""

_int64 = st.integers(-(2**63), 2**63 - 1)


event_requests = st.builds(
    Request,
    instance_id=st.text(min_size=1, max_size=5),
    trace_id=st.text(max_size=5),
    timestamp_ns=_int64,
    block_keys=st.lists(_int64, max_size=12).map(lambda keys: np.array(keys, np.int64)),
    input_token_len=_int64,
    trace_block_size_tokens=st.none() | st.integers(1, 2**63 - 1),
    keys_rounded_up=st.just(False),
)
"""Requests that any format may give, with keys of full blocks only."""
