"""Facts of the archive's tests, made from a seed."""

from __future__ import annotations

import numpy as np

from litehit.facts import FactBatch
from schemas.fact import RequestFact
from service.archive.archived_facts import ArchivedFacts
from service.archive.decode import FetchedFacts

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 10**9


def made_fact(offset: int) -> RequestFact:
    """The fact that stands on an offset: one a second, of three instances in turn."""
    rng = np.random.default_rng(offset)
    curve = []
    end = 0
    for first in range(int(rng.integers(0, 4))):
        start = end + int(rng.integers(1, 2000)) + (first > 0)
        run = int(rng.integers(1, 60))
        curve.append((start, run))
        end = start + run - 1
    return RequestFact(
        trace_id=f"chat-{offset}",
        instance_id=f"model-{offset % 3}",
        timestamp_ns=START_NS + offset * SECOND_NS,
        input_token_len=sum(run for _, run in curve) * 512 + int(rng.integers(0, 9000)),
        block_size_tokens=512,
        block_bytes=1 << 20,
        hit_curve=tuple(curve),
    )


def made_facts(count: int, first_offset: int = 0) -> ArchivedFacts:
    """The facts of consecutive offsets."""
    offsets = np.arange(first_offset, first_offset + count)
    return ArchivedFacts(FactBatch.from_facts([made_fact(offset) for offset in offsets.tolist()]), offsets, offsets * 2)


def fetched(offsets: range | list[int], partition: int = 0) -> FetchedFacts:
    """The records of these offsets as they come from the topic."""
    return FetchedFacts(
        list(offsets),
        [made_fact(offset).to_json() for offset in offsets],
        [f"litehit.requests/{partition}/{2 * offset}".encode() for offset in offsets],
    )
