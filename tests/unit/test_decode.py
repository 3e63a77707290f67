from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.fact import RequestFact
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
def test_facts_come_back_from_their_records(written: list[RequestFact]) -> None:
    assert list(decode_facts([fact.to_json() for fact in written])) == written


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        (b"[]", "Input should be an object"),
        (changed(timestamp_ns=1.0), "timestamp_ns: "),
        (changed(timestamp_ns=2**63), "timestamp_ns: "),
        (changed(input_token_len=29), "hit_curve counts 3 blocks"),
        (changed(hit_curve=[[1, 2], [3, 1]]), r"hit_curve\[1\] starts at 3"),
        (changed(hit_curve=[[1], [2, 4, 1]]), "hit_curve.0"),
        (changed(extra=1), "extra: "),
    ],
)
def test_the_first_record_that_is_no_fact_is_named(value: bytes | None, message: str) -> None:
    with pytest.raises(UndecodableFact, match=message) as refused:
        decode_facts([GOOD.to_json(), value, b"neither"])
    assert refused.value.index == 1


def test_more_tokens_than_a_request_may_have_are_no_fact() -> None:
    values = [changed(input_token_len=tokens) for tokens in (2**40, 2**40 + 1, 2**63 - 1)]
    with pytest.raises(UndecodableFact, match="input_token_len: 1099511627777 is more than 1099511627776") as refused:
        decode_facts(values)
    assert refused.value.index == 1
    assert len(decode_facts(values[:1])) == 1


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
