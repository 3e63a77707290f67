"""Whatever happens to the index, in whatever order, every answer is the slow sum over the facts it names."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from prometheus_client import CollectorRegistry

from schemas.fact import RequestFact
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey
from tests.api_doubles import Client, Segments
from tests.histories import CHAINS, capacities_gb, rows_of, segment_of, slow_answer, small_facts, windows

chains = st.sampled_from(CHAINS)


class IndexModel(RuleBasedStateMachine):
    """The topic as lists of facts (the place is the offset), the archive as the end of its last segment."""

    def __init__(self) -> None:
        super().__init__()
        self.topic: dict[ChainKey, list[RequestFact]] = {chain: [] for chain in CHAINS}
        self.consumed = dict.fromkeys(CHAINS, 0)
        self.published = dict.fromkeys(CHAINS, 0)
        self.segments = Segments()
        self.index = FactIndex(self.segments, window_rows=10_000)
        self.index.loaded()
        self.client = Client(create_app(self.index, registry=CollectorRegistry()))

    def teardown(self) -> None:
        self.client.close()

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

    def _publish(self, chain: ChainKey, end: int) -> None:
        base = self.published[chain]
        if end <= base:
            return
        facts = self.topic[chain][base:end]
        info = segment_of(chain, base, end, facts)
        self.segments.rows[info] = rows_of(facts, base)
        self.published[chain] = end
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
            (chain.generation, chain.partition): self._reached(chain) for chain in CHAINS if self._reached(chain)
        }

    @invariant()
    def every_fact_is_counted_once(self) -> None:
        assert self.index.size().facts == len(self._counted())

    def _reached(self, chain: ChainKey) -> int:
        return max(self.consumed[chain], self.published[chain])

    def _counted(self) -> list[RequestFact]:
        return [fact for chain in CHAINS for fact in self.topic[chain][: self._reached(chain)]]


TestIndexModel = IndexModel.TestCase
TestIndexModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
