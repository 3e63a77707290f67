from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from schemas.fact import RequestFact
from service.api import file_selection
from service.api.file_selection import select_facts
from tests.facts_strategies import facts
from tests.histories import small_facts


def check(batches: list[list[RequestFact]], capacity_blocks: int) -> None:
    selection = select_facts(map(FactBatch.from_facts, batches))
    listed = [one for batch in batches for one in batch]
    assert set(selection.keys) == {(one.instance_id, one.block_size_tokens, one.block_bytes) for one in listed}
    for key, sums in selection.groups:
        own = [one for one in listed if (one.instance_id, one.block_size_tokens, one.block_bytes) == key]
        assert sums.requests == len(own)
        assert sums.input_tokens == sum(one.input_token_len for one in own)
        hits = sum(HitCurveProjector.project_blocks(one.hit_curve, capacity_blocks) for one in own)
        assert sums.hits(np.array([capacity_blocks])).tolist() == [hits]


batches_of_few = st.lists(st.lists(small_facts(), min_size=1, max_size=5), max_size=6)
batches_of_any = st.lists(st.lists(facts(), min_size=1, max_size=5), max_size=4)


@settings(deadline=None)
@given(batches_of_few | batches_of_any, st.integers(-1, 2**21))
def test_it_is_the_projector_fact_by_fact(batches: list[list[RequestFact]], capacity_blocks: int) -> None:
    check(batches, capacity_blocks)


@given(batches_of_few)
def test_batches_that_are_added_up_on_the_way_are_the_same(batches: list[list[RequestFact]]) -> None:
    before = file_selection._MERGED_AT
    file_selection._MERGED_AT = 2
    try:
        check(batches, 7)
    finally:
        file_selection._MERGED_AT = before
