"""Facts in columns for sums: the same from batches and from tables, whole, joined or chosen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litehit.facts import FactBatch
from schemas.fact import RequestFact
from service.api.rows import FactRows
from tests.histories import rows_of, small_facts

facts_lists = st.lists(small_facts(), max_size=8)


def listed(rows: FactRows) -> list[tuple[object, ...]]:
    keys = [rows.groups.keys[code] for code in rows.codes]
    return list(zip(keys, rows.times_ns.tolist(), rows.input_token_lens.tolist(), rows.hit_curves, strict=True))


def expected(facts: list[RequestFact]) -> list[tuple[object, ...]]:
    return [
        (
            (one.instance_id, one.block_size_tokens, one.block_bytes),
            one.timestamp_ns,
            one.input_token_len,
            one.hit_curve,
        )
        for one in facts
    ]


@given(facts_lists)
def test_of_a_batch_and_of_a_table(facts: list[RequestFact]) -> None:
    assert listed(FactRows.of(FactBatch.from_facts(facts))) == expected(facts)
    table = rows_of(facts, 0).table
    at = table.schema.get_field_index("instance_id")
    table = table.set_column(at, "instance_id", table["instance_id"].dictionary_encode())
    assert listed(FactRows.from_table(table)) == expected(facts)


@given(st.lists(facts_lists, min_size=1, max_size=4), st.data())
def test_joined_and_chosen(parts: list[list[RequestFact]], data: st.DataObject) -> None:
    joined = FactRows.concatenate([FactRows.of(FactBatch.from_facts(facts)) for facts in parts])
    facts = [one for part in parts for one in part]
    assert listed(joined) == expected(facts)
    chosen = [place for place in range(len(facts)) if data.draw(st.booleans())]
    assert listed(joined.select(np.array(chosen, np.int64))) == expected([facts[place] for place in chosen])
