"""Facts read back from their own JSON: the very facts, or nothing, whatever was done to the bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from litehit.facts import FactBatch
from litehit.request import MAX_INPUT_TOKENS
from schemas.fact import RequestFact
from tests.facts_strategies import facts

_PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), max_size=12)
_FACT = RequestFact(
    trace_id="t",
    instance_id="i",
    timestamp_ns=-1,
    input_token_len=100,
    block_size_tokens=10,
    block_bytes=2**40,
    hit_curve=((1, 2), (4, 1)),
)


@st.composite
def plain_facts(draw: st.DrawFn) -> RequestFact:
    return draw(facts()).model_copy(update={"trace_id": draw(_PLAIN), "instance_id": draw(_PLAIN)})


def read(values: list[bytes]) -> list[RequestFact] | None:
    batch = FactBatch.from_json(values)
    return None if batch is None else list(batch)


@given(st.lists(plain_facts(), max_size=20))
def test_what_was_written_is_read(written: list[RequestFact]) -> None:
    assert read([fact.to_json() for fact in written]) == written
    batch = FactBatch.from_facts(written)
    assert read(batch.to_json()) == written


@pytest.mark.parametrize("edge", [-(2**63), -1, 0, 2**63 - 1])
def test_times_are_read_up_to_their_limits(edge: int) -> None:
    fact = _FACT.model_copy(update={"timestamp_ns": edge})
    assert read([fact.to_json()]) == [fact]


def test_a_request_may_have_so_many_tokens_and_no_more() -> None:
    most = _FACT.model_copy(update={"input_token_len": MAX_INPUT_TOKENS})
    assert read([most.to_json()]) == [most]
    assert read([most.model_copy(update={"input_token_len": MAX_INPUT_TOKENS + 1}).to_json()]) is None


@st.composite
def spoilt(draw: st.DrawFn) -> list[bytes]:
    """Facts of which one was changed in a few bytes."""
    values = [fact.to_json() for fact in draw(st.lists(plain_facts(), min_size=1, max_size=4))]
    place = draw(st.integers(0, len(values) - 1))
    value = bytearray(values[place])
    for _ in range(draw(st.integers(1, 3))):
        low = draw(st.integers(0, len(value)))
        high = min(len(value), low + draw(st.integers(0, 3)))
        value[low:high] = draw(
            st.binary(max_size=3) | st.text('0123456789-,[]{}":', max_size=3).map(lambda text: text.encode())
        )
    values[place] = bytes(value)
    return values


@settings(max_examples=600)
@given(spoilt())
@example([_FACT.to_json() + _FACT.to_json()])
@example([_FACT.to_json()[:-1], b"}" + _FACT.to_json()])
@example([_FACT.to_json()[:10], _FACT.to_json()])
@example([b"", _FACT.to_json()])
@example([b"\0" * 100])
def test_what_was_not_written_so_is_never_read_otherwise(values: list[bytes]) -> None:
    try:
        expected = [RequestFact.model_validate_json(value) for value in values]
    except ValidationError:
        assert read(values) is None
    else:
        assert read(values) in (None, expected)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timestamp_ns", "-0"),
        ("timestamp_ns", "01"),
        ("timestamp_ns", "-"),
        ("timestamp_ns", "9223372036854775808"),
        ("timestamp_ns", "-9223372036854775809"),
        ("timestamp_ns", "18446744073709551617"),
        ("timestamp_ns", "1e3"),
        ("input_token_len", "-1"),
        ("input_token_len", "29"),
        ("block_size_tokens", "0"),
        ("block_bytes", "0"),
        ("hit_curve", "[[0,1]]"),
        ("hit_curve", "[[1,0]]"),
        ("hit_curve", "[[1,2],[3,1]]"),
        ("hit_curve", "[[4,1],[1,2]]"),
        ("hit_curve", "[[1,2],]"),
        ("hit_curve", "[[1,2][4,1]]"),
        ("hit_curve", "[[1,2,3]]"),
        ("hit_curve", "[[4611686018427387904,1]]"),
        ("hit_curve", "[[1,2], [4,1]]"),
        ("trace_id", '"\\n"'),
        ("trace_id", '"ä"'),
        ("instance_id", "null"),
    ],
)
def test_other_values_are_left_to_the_model(field: str, value: str) -> None:
    members = [
        f'"{name}":{value if name == field else json.dumps(member, separators=(",", ":"))}'
        for name, member in _FACT.model_dump().items()
    ]
    fact = ("{" + ",".join(members) + "}").encode()
    good = _FACT.to_json()
    assert read([good, fact, good]) is None
    assert read([good, good]) == [_FACT, _FACT]
