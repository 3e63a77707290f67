from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit import facts_csv
from litehit.atomic_file import atomic_file
from litehit.errors import CapacityError, FactsError, OptionError
from litehit.facts import FactBatch
from litehit.facts_csv import HEADER, read_facts
from litehit.projector import HitCurveProjector
from litehit.query import query, query_lines
from litehit.totals import SlotTotals
from schemas.fact import HitCurve, RequestFact
from tests.facts_strategies import facts

GB = 1024**3


def answer(batches: Iterable[FactBatch], capacities: list[float]) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    query(batches, capacities, sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def fact(instance_id: str, tokens: int, curve: HitCurve, block: int = 4, charge: int = 1024) -> RequestFact:
    return RequestFact(
        trace_id="t",
        instance_id=instance_id,
        timestamp_ns=1,
        input_token_len=tokens,
        block_size_tokens=block,
        block_bytes=charge,
        hit_curve=curve,
    )


WORKED = FactBatch.from_facts(
    [
        fact("i", 13, ()),
        fact("i", 12, ((1, 2),)),
        fact("i", 13, ((1, 2), (4, 1))),
        fact("i", 8, ((1, 1),)),
        fact("i", 8, ((1, 2),)),
    ]
)


def test_the_worked_example() -> None:
    rows = answer([WORKED], [2048 / GB, 3072 / GB, -1])
    assert rows[2] == {
        "trace_id": "t",
        "instance_id": "i",
        "timestamp_ns": 1,
        "input_token_len": 13,
        "hit_blocks": [2, 2, 3],
        "hit_rates": [8 / 13, 8 / 13, 12 / 13],
    }
    assert [row["hit_blocks"] for row in rows[:5]] == [[0, 0, 0], [2, 2, 2], [2, 2, 3], [1, 1, 1], [2, 2, 2]]
    totals = {
        "requests": 5,
        "total_input_tokens": 54,
        "capacity_gb": [2048 / GB, 3072 / GB, -1],
        "total_hit_blocks": [7, 7, 8],
        "total_hit_tokens": [28, 28, 32],
        "hit_rates": [28 / 54, 28 / 54, 32 / 54],
        "of_ceiling": [28 / 32, 28 / 32, 1.0],
        "ceiling": {"hit_blocks": 8, "hit_tokens": 32, "hit_rate": 32 / 54},
    }
    assert rows[5:] == [{"summary": "instance", "instance_id": "i", **totals}, {"summary": "total", **totals}]
    assert list(rows[0]) == ["trace_id", "instance_id", "timestamp_ns", "input_token_len", "hit_blocks", "hit_rates"]
    assert list(rows[6]) == ["summary", *totals]


def test_capacities_keep_order_and_duplicates() -> None:
    rows = answer([WORKED], [-1, 0, 2048 / GB, 0, -5])
    assert rows[-1]["total_hit_blocks"] == [8, 0, 7, 0, 8]
    assert rows[-1]["capacity_gb"] == [-1, 0, 2048 / GB, 0, -5]


def test_the_summaries_alone() -> None:
    sink = io.BytesIO()
    total = query([WORKED], [1, -1], sink, requests=False)
    lines = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert lines == answer([WORKED], [1, -1])[5:]
    assert total.hit_blocks == [8, 8]


def test_lines_come_a_few_at_a_time_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer([WORKED], [2048 / GB, -1])
    monkeypatch.setattr("litehit.query._CELLS", 4)
    assert answer([WORKED], [2048 / GB, -1]) == whole
    lines = list(query_lines([WORKED], SlotTotals((2048 / GB, -1.0))))
    assert [part.count(b"\n") for part in lines] == [2, 2, 1, 1, 1]


def test_another_charge() -> None:
    lines = [*query_lines([WORKED], SlotTotals((2048 / GB,)), block_bytes=2048)]
    assert json.loads(lines[-1])["total_hit_blocks"] == [4]


def test_no_tokens_give_the_rate_0() -> None:
    rows = answer([FactBatch.from_facts([fact("i", 0, ())])], [-1])
    assert [row["hit_rates"] for row in rows] == [[0.0], [0.0], [0.0]]


def test_no_facts_give_the_total_alone() -> None:
    rows = answer([], [1])
    assert len(rows) == 1
    assert rows[0]["summary"] == "total"
    assert rows[0]["requests"] == 0


def test_sums_beyond_64_bits_are_exact() -> None:
    huge = fact("i", 2**63 - 1, ((1, 2**62 - 1),), block=1)
    rows = answer([FactBatch.from_facts([huge] * 5)], [-1])
    assert rows[-1]["total_hit_tokens"] == [5 * (2**62 - 1)]
    assert rows[-1]["total_input_tokens"] == 5 * (2**63 - 1)


@settings(deadline=None)
@given(
    st.lists(st.lists(facts(), min_size=1, max_size=6), max_size=4),
    st.lists(st.sampled_from([0, -1, 1e-6, 0.5, 1, 1000, 1e300]) | st.floats(-1, 1e6), min_size=1, max_size=4),
)
def test_it_is_the_projector_row_by_row(batches: list[list[RequestFact]], capacities: list[float]) -> None:
    rows = answer(map(FactBatch.from_facts, batches), capacities)
    listed = [one for batch in batches for one in batch]
    slots = [HitCurveProjector.capacity_bytes(capacity) for capacity in capacities]
    hits = [[HitCurveProjector.project_bytes(one.hit_curve, slot, one.block_bytes) for slot in slots] for one in listed]
    assert [row["hit_blocks"] for row in rows[: len(listed)]] == hits
    instances = sorted({one.instance_id for one in listed})
    assert [row["instance_id"] for row in rows[len(listed) : -1]] == instances
    for row in rows[len(listed) :]:
        chosen = [i for i, one in enumerate(listed) if row.get("instance_id", one.instance_id) == one.instance_id]
        tokens = sum(listed[i].input_token_len for i in chosen)
        hit_tokens = [sum(hits[i][slot] * listed[i].block_size_tokens for i in chosen) for slot in range(len(slots))]
        assert row["requests"] == len(chosen)
        assert row["total_input_tokens"] == tokens
        assert row["total_hit_blocks"] == [sum(hits[i][slot] for i in chosen) for slot in range(len(slots))]
        assert row["total_hit_tokens"] == hit_tokens
        assert row["hit_rates"] == [hit / tokens if tokens else 0.0 for hit in hit_tokens]


@pytest.mark.parametrize("capacity", [float("nan"), float("inf"), float("-inf")])
def test_a_capacity_that_is_no_number_is_refused(capacity: float) -> None:
    with pytest.raises(CapacityError, match="is not a finite number"):
        answer([WORKED], [1, capacity])


@pytest.mark.parametrize("count", [0, 1001])
def test_too_few_or_many_capacities_are_refused(count: int) -> None:
    with pytest.raises(OptionError, match=f"{count} capacities were given; give 1 to 1000"):
        answer([WORKED], [1.0] * count)


def test_a_malformed_row_fails_the_query_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_csv, "_BATCH_ROWS", 1)
    data = f'{HEADER}\nt,i,5,9,4,1024,"[]"\nt,i,5,9,4,1024,"[x]"\n'.encode()
    with (
        pytest.raises(FactsError, match=r"f\.csv: row 3"),
        atomic_file(tmp_path / "answer.jsonl") as sink,
    ):
        query(read_facts(io.BytesIO(data), "f.csv"), [1], sink)
    assert list(tmp_path.iterdir()) == []
