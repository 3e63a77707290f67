"""Whatever happens to the index, in whatever order, every answer is the slow sum over the facts it names."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from prometheus_client import CollectorRegistry

from litehit.projector import HitCurveProjector
from schemas.fact import RequestFact
from service.api.app import create_app
from service.api.chain_state import Extent
from service.api.index import FactIndex
from service.api.selection import Selection
from service.api.windows import TimeWindow
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo
from tests.api_doubles import Client, Segments
from tests.histories import CHAINS, capacities_gb, rows_of, segment_of, slow_answer, slow_choice, small_facts, windows

CAPACITY_BLOCKS = [*range(30), 10**18, -1]
chains = st.sampled_from(CHAINS)


class IndexModel(RuleBasedStateMachine):
    """The topic as lists of facts (the place is the offset), the archive as the ends of its segments.

    Hours are of four nanoseconds, so that windows cover some and cut others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("service.api.pages.BUCKET_NS", 4)
        self.folder = TemporaryDirectory()
        self.ends: dict[ChainKey, list[int]] = {chain: [0] for chain in CHAINS}
        self.topic: dict[ChainKey, list[RequestFact]] = {chain: [] for chain in CHAINS}
        self.consumed = dict.fromkeys(CHAINS, 0)
        self.published = dict.fromkeys(CHAINS, 0)
        self.segments = Segments()
        self.index = FactIndex(self.segments, pages=Path(self.folder.name), window_rows=10_000)
        self.index.loaded()
        self.client = Client(create_app(self.index, registry=CollectorRegistry()))

    def teardown(self) -> None:
        self.client.close()
        self.folder.cleanup()
        self.patch.undo()

    @initialize(facts=st.lists(small_facts(), min_size=1, max_size=8))
    def begin(self, facts: list[RequestFact]) -> None:
        self.produce(CHAINS[0], facts)
        self.consume(CHAINS[0], len(facts))

    @rule(chain=chains, facts=st.lists(small_facts(), min_size=1, max_size=8))
    def produce(self, chain: ChainKey, facts: list[RequestFact]) -> None:
        self.topic[chain] += facts

    @rule(chain=chains, count=st.integers(1, 8))
    def consume(self, chain: ChainKey, count: int) -> None:
        first = self.consumed[chain]
        facts = self.topic[chain][first : first + count]
        self.consumed[chain] += len(facts)
        if facts:
            self.index.appended(chain, rows_of(facts, first))

    @rule(chain=chains, count=st.integers(1, 8))
    def publish_own(self, chain: ChainKey, count: int) -> None:
        self._publish(chain, min(self.published[chain] + count, self.consumed[chain]))

    @rule(chain=chains, count=st.integers(1, 8))
    def another_archiver_publishes(self, chain: ChainKey, count: int) -> None:
        # It may be ahead of this one's consumer, which goes on with facts that the index has already.
        self._publish(chain, min(self.published[chain] + count, len(self.topic[chain])))

    @rule(chain=chains)
    def resynchronise(self, chain: ChainKey) -> None:
        self.index.tail_dropped(chain)
        self.consumed[chain] = self.published[chain]

    @precondition(lambda self: self._merges())
    @rule(data=st.data(), tell_removed=st.booleans())
    def compact(self, data: st.DataObject, tell_removed: bool) -> None:
        chain, first, last = data.draw(st.sampled_from(self._merges()))
        parts = [self._info(chain, place) for place in range(first, last + 1)]
        merged = self._make(chain, parts[0].base_offset, parts[-1].end_offset)
        for info in parts:
            del self.segments.rows[info]
        self.segments.rows[merged] = self._rows(merged)
        del self.ends[chain][first + 1 : last + 1]
        self.index.follow([merged], parts if tell_removed else (), {})

    @precondition(lambda self: any(len(ends) > 1 for ends in self.ends.values()))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        chain = data.draw(st.sampled_from([chain for chain in CHAINS if len(self.ends[chain]) > 1]))
        info = self._info(chain, 0)
        del self.segments.rows[info]
        del self.ends[chain][0]
        self.index.follow((), [info], {chain: Extent(info.end_offset)})

    @rule(keeps=st.booleans())
    def restart(self, keeps: bool) -> None:
        """A new index over the segments and what the folder has of them; the tail is consumed again."""
        pages = Path(self.folder.name) if keeps else None
        self.index = FactIndex(self.segments, pages=pages, window_rows=10_000)
        extents = {chain: Extent(ends[0]) for chain, ends in self.ends.items()}
        self.index.follow(list(self.segments.rows), (), extents)
        self.index.loaded()
        self.client.close()
        self.client = Client(create_app(self.index, registry=CollectorRegistry()))
        for chain in CHAINS:
            self.consumed[chain] = self.published[chain]

    def _merges(self) -> list[tuple[ChainKey, int, int]]:
        return [
            (chain, first, last)
            for chain in CHAINS
            for last in range(1, len(self.ends[chain]) - 1)
            for first in range(last)
        ]

    def _info(self, chain: ChainKey, place: int) -> SegmentInfo:
        return self._make(chain, self.ends[chain][place], self.ends[chain][place + 1])

    def _make(self, chain: ChainKey, base: int, end: int) -> SegmentInfo:
        return segment_of(chain, base, end, self.topic[chain][base:end])

    def _rows(self, info: SegmentInfo) -> ArchivedFacts:
        return rows_of(self.topic[info.chain][info.base_offset : info.end_offset], info.base_offset)

    def _publish(self, chain: ChainKey, end: int) -> None:
        base = self.published[chain]
        if end <= base:
            return
        info = self._make(chain, base, end)
        self.segments.rows[info] = self._rows(info)
        self.published[chain] = end
        self.ends[chain].append(end)
        self.index.published(info)
        self.index.published(info)  # the archiver and the follower may both tell

    @precondition(lambda self: any(self.consumed.values()))
    @rule(
        capacities=capacities_gb,
        window=windows(),
        block_bytes=st.none() | st.integers(1, 2**31),
        data=st.data(),
    )
    def ask(self, capacities: list[float], window: TimeWindow, block_bytes: int | None, data: st.DataObject) -> None:
        counted = self._counted()
        known = sorted({fact.instance_id for fact in counted})
        chosen = data.draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
        parameters: list[tuple[str, Any]] = [("capacity_gb", repr(float(capacity))) for capacity in capacities]
        parameters += [("instance_id", one) for one in chosen]
        for name, value in (("from", window.from_ns), ("to", window.to_ns), ("block_bytes", block_bytes)):
            if value is not None:
                parameters.append((name, value))
        response = self.client.get("/query", parameters)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert {name: answer[name] for name in ("total", "instances")} == slow_answer(
            counted, capacities, window, chosen, block_bytes
        )
        assert {(one["generation"], one["partition"]): one["next_offset"] for one in answer["as_of"]} == {
            (chain.generation, chain.partition): self._reached(chain) for chain in CHAINS if self._reached(chain) > 0
        }
        self._compare_curves(slow_choice(counted, window, chosen), self.index.select(window, chosen or None))

    def _compare_curves(self, facts: list[RequestFact], selection: Selection) -> None:
        groups = dict(selection.groups)
        assert groups.keys() == {(one.instance_id, one.block_size_tokens, one.block_bytes) for one in facts}
        for key, sums in groups.items():
            curves = [
                one.hit_curve for one in facts if key == (one.instance_id, one.block_size_tokens, one.block_bytes)
            ]
            slow = [sum(HitCurveProjector.project_blocks(curve, c) for curve in curves) for c in CAPACITY_BLOCKS]
            for asked in (sums, sums.curve()):
                assert asked.hits(np.array(CAPACITY_BLOCKS)).tolist() == slow
                assert asked.ceiling() == slow[-1]

    @invariant()
    def every_fact_is_counted_once(self) -> None:
        assert self.index.size().facts == len(self._counted())

    def _reached(self, chain: ChainKey) -> int:
        return max(self.consumed[chain], self.published[chain])

    def _counted(self) -> list[RequestFact]:
        return [fact for chain in CHAINS for fact in self.topic[chain][self.ends[chain][0] : self._reached(chain)]]


TestIndexModel = IndexModel.TestCase
TestIndexModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
