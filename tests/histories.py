"""Small histories of facts in which instances, times and charges coincide often, and sums of them the slow way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from litehit.facts import FactBatch
from litehit.projector import INFINITE, HitCurveProjector
from schemas.fact import RequestFact
from service.api.windows import TimeWindow
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo

QUARTER_GB = 2**28
CHAINS = [ChainKey("facts", "old", 0), ChainKey("facts", "new", 0), ChainKey("facts", "new", 1)]


def fact(time: int, *curve: tuple[int, int], instance: str = "chat", block: int = 4, tokens: int = 100) -> RequestFact:
    """A fact of blocks of a quarter GB."""
    return RequestFact(
        trace_id="",
        instance_id=instance,
        timestamp_ns=time,
        input_token_len=tokens,
        block_size_tokens=block,
        block_bytes=QUARTER_GB,
        hit_curve=curve,
    )


@st.composite
def small_facts(draw: st.DrawFn) -> RequestFact:
    """A fact of few possible values."""
    curve = []
    end = 0
    for first, (gap, run) in enumerate(draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), max_size=4))):
        start = end + gap + (first > 0)
        curve.append((start, run))
        end = start + run - 1
    block_size = draw(st.sampled_from([1, 16, 512]))
    return RequestFact(
        trace_id="t",
        instance_id=draw(st.sampled_from("abc")),
        timestamp_ns=draw(st.integers(-9, 9)),
        input_token_len=sum(run for _, run in curve) * block_size + draw(st.integers(0, 20)),
        block_size_tokens=block_size,
        block_bytes=draw(st.sampled_from([QUARTER_GB, 4 * QUARTER_GB, 3])),
        hit_curve=tuple(curve),
    )


@st.composite
def windows(draw: st.DrawFn) -> TimeWindow:
    """A window that is not empty, each end open or near the facts."""
    first, last = sorted(draw(st.lists(st.integers(-11, 11), min_size=2, max_size=2, unique=True)))
    return TimeWindow(draw(st.sampled_from([None, first])), draw(st.sampled_from([None, last])))


capacities_gb = st.lists(
    st.sampled_from([0, -1, 0.25, 0.2499, 1, 3e-9, 1e-8, 1e300, -1e300]) | st.floats(-1, 16), min_size=1, max_size=6
)


def rows_of(facts: Sequence[RequestFact], first_offset: int, step: int = 1) -> ArchivedFacts:
    """The facts at offsets `step` apart."""
    offsets = first_offset + step * np.arange(len(facts), dtype=np.int64)
    return ArchivedFacts(FactBatch.from_facts(facts), offsets, offsets)


def segment_of(chain: ChainKey, base: int, end: int, facts: Sequence[RequestFact]) -> SegmentInfo:
    """What a segment of these facts says of itself."""
    times = [fact.timestamp_ns for fact in facts]
    return SegmentInfo(chain, base, end, len(facts), min(times), max(times))


def slow_hits(
    facts: Sequence[RequestFact], capacity_bytes: Sequence[int], block_bytes: int | None
) -> tuple[list[int], list[int]]:
    """Hit blocks and hit tokens at each capacity, one fact at a time."""
    hit_blocks, hit_tokens = [], []
    for capacity in capacity_bytes:
        hits = [
            HitCurveProjector.project_bytes(fact.hit_curve, capacity, block_bytes or fact.block_bytes) for fact in facts
        ]
        hit_blocks.append(sum(hits))
        hit_tokens.append(sum(hit * fact.block_size_tokens for hit, fact in zip(hits, facts, strict=True)))
    return hit_blocks, hit_tokens


def slow_summary(facts: Iterable[RequestFact], capacities: Sequence[float], block_bytes: int | None) -> dict[str, Any]:
    """The summary of an answer, one fact and one capacity at a time."""
    listed = list(facts)
    tokens = sum(fact.input_token_len for fact in listed)
    asked = [HitCurveProjector.capacity_bytes(capacity) for capacity in capacities]
    hit_blocks, hit_tokens = slow_hits(listed, [*asked, INFINITE], block_bytes)
    more_blocks, more_tokens = slow_hits(listed, [one if one < 0 else one + 2**30 for one in asked], block_bytes)
    gained = [more - hit for hit, more in zip(hit_tokens, more_tokens, strict=False)]
    rates = [hit / tokens if tokens else 0.0 for hit in hit_tokens]
    return {
        "requests": len(listed),
        "total_input_tokens": tokens,
        "capacity_gb": [float(capacity) for capacity in capacities],
        "total_hit_blocks": hit_blocks[:-1],
        "total_hit_tokens": hit_tokens[:-1],
        "hit_rates": rates[:-1],
        "of_ceiling": [hit / hit_tokens[-1] if hit_tokens[-1] else 1.0 for hit in hit_tokens[:-1]],
        "gain_per_gb": {
            "hit_blocks": [more - hit for hit, more in zip(hit_blocks, more_blocks, strict=False)],
            "hit_tokens": gained,
            "hit_rates": [gain / tokens if tokens else 0.0 for gain in gained],
        },
        "ceiling": {"hit_blocks": hit_blocks[-1], "hit_tokens": hit_tokens[-1], "hit_rate": rates[-1]},
    }


def slow_choice(facts: Iterable[RequestFact], window: TimeWindow, instance_ids: Collection[str]) -> list[RequestFact]:
    """The facts that a call is about."""
    return [
        fact
        for fact in facts
        if (window.from_ns is None or fact.timestamp_ns >= window.from_ns)
        and (window.to_ns is None or fact.timestamp_ns < window.to_ns)
        and (not instance_ids or fact.instance_id in instance_ids)
    ]


def slow_answer(
    facts: Iterable[RequestFact],
    capacities: Sequence[float],
    window: TimeWindow,
    instance_ids: Collection[str],
    block_bytes: int | None,
) -> dict[str, Any]:
    """`total` and `instances` of an answer, the slow way."""
    chosen = slow_choice(facts, window, instance_ids)
    answered = sorted(set(instance_ids) or {fact.instance_id for fact in chosen})
    return {
        "total": slow_summary(chosen, capacities, block_bytes),
        "instances": [
            {
                **slow_summary([fact for fact in chosen if fact.instance_id == one], capacities, block_bytes),
                "instance_id": one,
            }
            for one in answered
        ],
    }
