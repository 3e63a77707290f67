"""Counters of configured slots equal sums of projections, whenever a slot was configured."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from litehit.facts import FactBatch
from litehit.registry import InstanceConfig
from schemas.fact import RequestFact
from service.lanes.counters import Charge, OnlineCounters
from tests.histories import QUARTER_GB, slow_summary, small_facts

CONFIG = InstanceConfig("a", "g", 16, 16, QUARTER_GB, False, 0, (0.25, 1.0))
batches = st.lists(st.lists(small_facts(), min_size=1, max_size=4), max_size=5)


def charged(facts: list[RequestFact], charge: Charge) -> list[RequestFact]:
    return [fact.model_copy(update=charge._asdict()) for fact in facts]


def assert_totals(counters: OnlineCounters, facts: list[RequestFact], config: InstanceConfig) -> None:
    totals = counters.totals()
    expected = slow_summary(facts, config.capacity_gb, None)
    assert (totals.requests, totals.input_tokens) == (expected["requests"], expected["total_input_tokens"])
    assert (totals.hit_blocks, totals.hit_tokens) == (expected["total_hit_blocks"], expected["total_hit_tokens"])
    assert totals.ceiling_blocks == expected["ceiling"]["hit_blocks"]
    assert totals.ceiling_tokens == expected["ceiling"]["hit_tokens"]


@given(
    history=batches,
    charges=st.lists(st.sampled_from([Charge(16, QUARTER_GB), Charge(1, 3), Charge(16, 3)]), min_size=5, max_size=5),
    later=st.lists(st.sampled_from([-1.0, 0.0, 0.25, 3e-9, 2.0]), max_size=4),
    cut=st.integers(0, 5),
)
def test_counters_equal_the_slow_sum(
    history: list[list[RequestFact]], charges: list[Charge], later: list[float], cut: int
) -> None:
    counters, config = OnlineCounters(CONFIG), CONFIG
    facts: list[RequestFact] = []
    for number, (batch, charge) in enumerate(zip(history, charges, strict=False)):
        if number == cut:  # a restart with other slots
            config = replace(CONFIG, capacity_gb=tuple(later))
            counters = OnlineCounters(config, counters.copy_sums())
        added = charged(batch, charge)
        counters.add(charge, FactBatch.from_facts(added))
        facts += added
        assert_totals(counters, facts, config)


def test_a_copy_stays_as_it_was() -> None:
    counters = OnlineCounters(CONFIG)
    fact = RequestFact(
        trace_id="",
        instance_id="a",
        timestamp_ns=0,
        input_token_len=100,
        block_size_tokens=16,
        block_bytes=QUARTER_GB,
        hit_curve=((1, 2),),
    )
    charge = Charge(16, QUARTER_GB)
    counters.add(charge, FactBatch.from_facts([fact]))
    totals, sums = counters.totals(), counters.copy_sums()
    counters.add(charge, FactBatch.from_facts([fact, fact]))
    assert (totals.requests, totals.ceiling_blocks) == (1, 2)
    assert (sums[charge].requests, sums[charge].curve.ceiling()) == (1, 2)
    assert counters.totals().ceiling_blocks == 6
