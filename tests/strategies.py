"""Hypothesis strategies for requests."""

from __future__ import annotations

from hypothesis import strategies as st

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
