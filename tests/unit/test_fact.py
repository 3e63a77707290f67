from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from litehit.facts import FactBatch
from schemas.fact import HitCurve, RequestFact
from tests.strategies import curves

FACT = RequestFact(
    trace_id="t",
    instance_id="i",
    timestamp_ns=-1,
    input_token_len=100,
    block_size_tokens=4,
    block_bytes=1024,
    hit_curve=((1, 2), (4, 1)),
)


def made_fact(trace: str, instance: str, curve: HitCurve, time: int, length: int, size: int) -> RequestFact:
    values = {"trace_id": trace, "instance_id": instance, "timestamp_ns": ~time, "input_token_len": length}
    return FACT.model_copy(update={**values, "block_size_tokens": size, "block_bytes": size, "hit_curve": curve})


def test_the_bytes_of_a_fact() -> None:
    assert FACT.to_json() == (
        b'{"trace_id":"t","instance_id":"i","timestamp_ns":-1,"input_token_len":100,"block_size_tokens":4,'
        b'"block_bytes":1024,"hit_curve":[[1,2],[4,1]]}'
    )


texts = st.one_of(st.text(st.characters(codec="utf-8")), st.text('a"\\\x00\n\x7fä'))


@given(text=texts, curve=curves)
def test_a_fact_survives_its_json(text: str, curve: HitCurve) -> None:
    fact = FACT.model_copy(update={"trace_id": text, "hit_curve": curve, "input_token_len": 10_000})
    assert RequestFact.model_validate_json(fact.to_json()) == fact
    assert json.loads(fact.to_json())["trace_id"] == text


@given(st.lists(st.builds(made_fact, texts, texts, curves, *[st.integers(0, 2**63 - 1)] * 3), max_size=4))
def test_the_bytes_of_a_batch_are_those_of_its_facts(facts: list[RequestFact]) -> None:
    assert FactBatch.from_facts(facts).to_json() == [fact.to_json() for fact in facts]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hit_curve": [[1, 2], [3, 1]]}, r"hit_curve\[1\] starts at 3 blocks"),
        ({"hit_curve": [[5, 1], [1, 1]]}, r"hit_curve\[1\] starts at 1 blocks"),
        ({"hit_curve": [[0, 1]]}, "greater than or equal to 1"),
        ({"hit_curve": [[1, 0]]}, "greater than or equal to 1"),
        ({"hit_curve": [[1, 1, 1]]}, "at most 2 items"),
        ({"hit_curve": [[1, 1.0]]}, "valid integer"),
        ({"hit_curve": [[1, 26]]}, "more than input_token_len 100"),
        ({"input_token_len": -1}, "greater than or equal to 0"),
        ({"block_bytes": 0}, "greater than or equal to 1"),
        ({"block_size_tokens": "4"}, "valid integer"),
        ({"timestamp_ns": 2**63}, "less than"),
        ({"more": 1}, "not permitted"),
    ],
)
def test_what_is_no_fact_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RequestFact.model_validate_json(json.dumps({**json.loads(FACT.to_json()), **change}))


def test_a_batch_is_its_facts() -> None:
    other = FACT.model_copy(update={"trace_id": "u", "hit_curve": (), "timestamp_ns": 2**62})
    batch = FactBatch.from_facts([FACT, other])
    assert list(batch) == [FACT, other]
    assert [fact.to_json() for fact in batch] == batch.to_json() == [FACT.to_json(), other.to_json()]
    assert list(batch.select(batch.timestamps_ns.argsort()[::-1])) == [other, FACT]
