from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.fact import RequestFact
from service.archive import decode as module
from service.archive.decode import FetchedFacts, decode, decode_facts, source_header
from service.archive.errors import UndecodableFact
from tests.facts_strategies import facts

GOOD = RequestFact(
    trace_id="t",
    instance_id="i",
    timestamp_ns=1,
    input_token_len=100,
    block_size_tokens=10,
    block_bytes=1,
    hit_curve=((1, 2), (4, 1)),
)


def changed(**fields: object) -> bytes:
    return json.dumps({**GOOD.model_dump(), **fields}, separators=(",", ":")).encode()


@given(st.lists(facts(), max_size=20))
def test_facts_read_back_by_the_fast_path(written: list[RequestFact]) -> None:
    values = [fact.to_json() for fact in written]
    fast = module._decode_canonical(values)
    assert fast is not None
    assert list(fast) == written


NEARLY_FACTS = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"\xff",
    b"not json",
    changed(trace_id=None),
    changed(trace_id=1),
    changed(timestamp_ns=True),
    changed(timestamp_ns=1.0),
    changed(timestamp_ns="1"),
    changed(timestamp_ns=2**63),
    changed(timestamp_ns=2**70),
    changed(timestamp_ns=-(2**63)),
    changed(input_token_len=-1),
    changed(input_token_len=29),
    changed(input_token_len=30),
    changed(block_size_tokens=0),
    changed(block_bytes=0),
    changed(hit_curve=None),
    changed(hit_curve=7),
    changed(hit_curve=[]),
    changed(hit_curve=[1, 2]),
    changed(hit_curve=[[1], [2, 4, 1]]),
    changed(hit_curve=[[1, 2, 4, 1]]),
    changed(hit_curve=[[[1, 2]], [4, 1]]),
    changed(hit_curve=[[1, 2], [3, 1]]),
    changed(hit_curve=[[1, 2], [2, 1]]),
    changed(hit_curve=[[1, 2], [4, 0]]),
    changed(hit_curve=[[0, 2], [4, 1]]),
    changed(hit_curve=[[-1, 2], [4, 1]]),
    changed(hit_curve=[[1, 2.0], [4, 1]]),
    changed(hit_curve=[[1, True], [4, 1]]),
    changed(hit_curve=[["1", 2], [4, 1]]),
    changed(hit_curve=[[2**62, 1], [2**63 - 1, 1]]),
    changed(hit_curve=[[1, 2**63]]),
    changed(extra=1),
    GOOD.to_json().replace(b'"trace_id":"t",', b'"trace_id":"t","trace_id":"u",'),
    GOOD.to_json().replace(b'"trace_id":"t",', b""),
    GOOD.to_json().replace(b"}", b',"block_bytes":1}'),
    GOOD.to_json() + b" ",
    GOOD.to_json() + b"{}",
    b"\xef\xbb\xbf" + GOOD.to_json(),
    GOOD.to_json().replace(b'"t"', rb'"\ud800"'),
    GOOD.to_json().replace(b'"t"', rb'"\u00e9\",\"hit_curve\":[[9,9]]"'),
    GOOD.to_json().replace(b"[[1,2]", b"[[ 1,2]"),
    GOOD.to_json().replace(b"[[1,2]", b"[[1,-2]"),
    GOOD.to_json().replace(b"[[1,2]", b"[[1,2e0]"),
]


@pytest.mark.parametrize("value", NEARLY_FACTS)
def test_the_model_decides_what_a_fact_is(value: bytes) -> None:
    """A value is accepted, and read as the same fact, exactly where the model does so."""
    values = [GOOD.to_json(), value]
    try:
        expected = [RequestFact.model_validate_json(one) for one in values]
    except ValueError:
        with pytest.raises(UndecodableFact) as refused:
            decode_facts(values)
        assert refused.value.index == 1
    else:
        assert list(decode_facts(values)) == expected


@given(st.data())
def test_a_damaged_fact_is_judged_as_the_model_does(data: st.DataObject) -> None:
    value = bytearray(data.draw(facts()).to_json())
    place = data.draw(st.integers(0, len(value) - 1))
    value[place] = data.draw(st.sampled_from(b'0123456789[],.-e"{}:t\\ '))
    test_the_model_decides_what_a_fact_is(bytes(value))


def test_a_tombstone_is_no_fact() -> None:
    with pytest.raises(UndecodableFact, match="no value"):
        decode_facts([GOOD.to_json(), None])


def test_a_reason_names_the_field() -> None:
    with pytest.raises(UndecodableFact, match="block_bytes: Input should be greater than or equal to 1"):
        decode_facts([changed(block_bytes=0)])


def test_offsets_come_from_the_record_and_its_source() -> None:
    fetched = FetchedFacts([7, 9], [GOOD.to_json()] * 2, [b"litehit.requests/3/41", b"litehit.requests/3/42"])
    archived = decode(fetched, 3)
    assert archived.fact_offsets.tolist() == [7, 9]
    assert archived.source_offsets.tolist() == [41, 42]
    assert archived.source_offsets.dtype == np.int64


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "litehit-source is absent"),
        (b"", r"must be <topic>/3/<offset>"),
        (b"litehit.requests/2/41", r"must be <topic>/3/<offset>"),
        (b"litehit.requests/3/-1", r"must be <topic>/3/<offset>"),
        (b"litehit.requests/3/", r"must be <topic>/3/<offset>"),
    ],
)
def test_a_fact_without_its_source_is_refused(source: bytes | None, message: str) -> None:
    with pytest.raises(UndecodableFact, match=message):
        decode(FetchedFacts([0], [GOOD.to_json()], [source]), 3)


def test_the_source_is_found_among_other_headers() -> None:
    assert source_header((("a", b"1"), ("litehit-source", b"r/0/5"))) == b"r/0/5"
    assert source_header((("a", b"1"),)) is None
    assert source_header(None) is None
