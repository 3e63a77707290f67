"""What the fast path takes is what the slow reader finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.block_keys import block_keys_array
from service.formats.base import FormatError
from service.formats.fast_object import Member, Wanted, read_fast
from service.formats.fields import read_object
from service.formats.number_text import NumberText
from tests.unit.test_fast_event import listed, odd_integers, odd_tokens, plain_keys, strings, unsigned_keys

WANTED: Wanted = {
    "n": Member.VALUE,
    "s": Member.VALUE,
    "k": Member.KEYS,
    "h": Member.HEXADECIMAL_KEYS,
    "o": {"n": Member.VALUE, "k": Member.KEYS},
}
names = st.sampled_from(["n", "s", "k", "h", "o", "n", "k", "other", "k\\u0000", "\\u006b"])
hexadecimals = listed(st.integers(0, 2**64 - 1).map('"{:016x}"'.format))
decimals = listed(st.integers(-(2**63), 2**64 - 1).map('"{}"'.format))
numbers = st.sampled_from(
    ["1.5", "0.10", "1e3", "-0.0", "1750000000.123456789", "0.30000000000000004", "1e-999999999999"]
)
scalars = st.one_of(odd_integers.map(str), odd_tokens, strings, numbers)
values = st.one_of(
    scalars, plain_keys, unsigned_keys, hexadecimals, decimals, listed(scalars), listed(listed(scalars)), st.just("{}")
)


def joined(members: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in members) + "}"


inner = st.lists(st.tuples(names, values), max_size=3).map(joined)
usual = st.sampled_from([("n", "5"), ("n", "2.5"), ("s", '"text"'), ("k", "[1,2]"), ("o", '{"n": 1.25, "k": ["7"]}')])
records = st.lists(st.one_of(usual, st.tuples(names, st.one_of(values, inner))), max_size=5).map(joined)


def slow(record: bytes, wanted: Wanted) -> dict[str, Any]:
    return pick(read_object(record), wanted)


def pick(members: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    picked = {}
    for name, member in wanted.items():
        if name not in members:
            continue
        if member is Member.VALUE:
            picked[name] = members[name]
        elif isinstance(member, Member):
            hexadecimal = member is Member.HEXADECIMAL_KEYS
            picked[name] = block_keys_array(members[name], hexadecimal=hexadecimal).tolist()
        else:
            picked[name] = pick(members[name], member)
    return picked


def plain(members: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else plain(value) if isinstance(value, dict) else value
        for name, value in members.items()
    }


@settings(max_examples=600, deadline=None)
@given(record=records)
@example('{"k": [[1], 2]}')
@example('{"x": {"k": [1], "k": 3}, "k": [[1], 2]}')
@example('{"o": {"k": [1], "n": 2}, "n": 1.5}')
@example('{"o": {"n": 2.5}, "n": 1.5}')
@example('{"s": "n", "n": 1.5}')
@example('{"x": "[", "k": [[1], 2]}')
def test_what_it_takes_is_what_the_slow_reader_finds(record: str) -> None:
    data = record.encode("utf-8", "surrogatepass")
    fast = read_fast(data, WANTED)
    if fast is not None:
        expected = slow(data, WANTED)
        assert plain(fast) == expected
        assert {name: type(value) for name, value in plain(fast).items()} == {
            name: type(value) for name, value in expected.items()
        }


@pytest.mark.parametrize(
    "record",
    [
        b'{"n": 1.50, "k": [1, 2], "flags": [true], "other": {"k": [[]] }}'.replace(b"[[]]", b"[1]"),
        b'{"n": null, "s": "x", "h": ["0123456789abcdef"]}',
        b'{"n": true, "k": []}',
        b'{"o": {"n": 1700000000000, "k": [18446744073709551615]}, "s": 1e3}',
        b'{"k": ["1", "-2"]}\n',
    ],
)
def test_it_takes_usual_records(record: bytes) -> None:
    fast = read_fast(record, WANTED)
    assert fast is not None
    assert plain(fast) == slow(record, WANTED)


def test_a_number_keeps_its_text() -> None:
    assert read_fast(b'{"n" : 1750000000.1234567890 }', WANTED) == {"n": NumberText("1750000000.1234567890")}


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[1]",
        b'{"k": [1.5]}',
        b'{"k": [true]}',
        b'{"k": 5}',
        b'{"n": [1]}',
        b'{"k": ["x"]}',
        b'{"n": 1, "n": 2}',
    ],
)
def test_it_leaves_the_unusual_to_the_slow_reader(record: bytes) -> None:
    assert read_fast(record, WANTED) is None


def test_objects_without_end_are_left_to_the_slow_reader() -> None:
    record = b'{"a":' * 500 + b"1" + b"}" * 500
    assert read_fast(record, WANTED) is None
    assert read_fast(b'{"k": [1], "a": ' + record + b"}", WANTED) is None


def test_the_slow_reader_names_what_is_no_object() -> None:
    with pytest.raises(FormatError, match="send one JSON object"):
        read_object(b"[1]")
