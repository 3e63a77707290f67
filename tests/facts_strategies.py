"""Hypothesis strategies of facts."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from litehit.facts import FactBatch
from schemas.fact import HitCurve, RequestFact
from service.archive.archived_facts import ArchivedFacts


@st.composite
def hit_curves(draw: st.DrawFn) -> HitCurve:
    """Canonical curves: each start past the previous segment's successor."""
    segments = []
    end = 0
    for first, (gap, run) in enumerate(
        draw(st.lists(st.tuples(st.integers(1, 2**20), st.integers(1, 2**20)), max_size=6))
    ):
        start = end + gap + (first > 0)
        segments.append((start, run))
        end = start + run - 1
    return tuple(segments)


@st.composite
def facts(draw: st.DrawFn) -> RequestFact:
    """Any fact that the engine could make."""
    curve = draw(hit_curves())
    block_size = draw(st.integers(1, 4096))
    return RequestFact(
        trace_id=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=12)),
        instance_id=draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)),
        timestamp_ns=draw(st.integers(-(2**63), 2**63 - 1)),
        input_token_len=sum(run for _, run in curve) * block_size + draw(st.integers(0, 2**20)),
        block_size_tokens=block_size,
        block_bytes=draw(st.integers(1, 2**40)),
        hit_curve=curve,
    )


@st.composite
def archived_facts(draw: st.DrawFn, min_size: int = 1) -> ArchivedFacts:
    """Facts with ascending offsets that have gaps, as transactions leave them."""
    listed = draw(st.lists(facts(), min_size=min_size, max_size=20))
    steps = draw(st.lists(st.integers(1, 3), min_size=len(listed), max_size=len(listed)))
    offsets = np.cumsum(np.array(steps, np.int64))
    return ArchivedFacts(FactBatch.from_facts(listed), offsets, offsets * 2)
