"""What the fast path of windows takes is what the slow reader finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from litehit.window import Window
from schemas.block_keys import block_keys_array
from service.formats.base import FormatError
from service.formats.fields import read_object
from service.formats.flat_lines import read_flat
from tests.unit.test_fast_event import listed, odd_integers, odd_tokens, plain_keys, strings, unsigned_keys

WANTED = ("n", "no")
KEYS = "k"
TEXTS = ("s", "t")
NUMBERS = ["1.5", "-0", "0.10", "1e3", "-0.0", "00", "01", "1.", "1e", "-", "1E+5", "2e-7", "1" * 30, "1." + "1" * 80]
EDGES = [0, 1, 9, 10, 10**18, 10**19 - 1, 10**19, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2 * 10**19, 99999999999999999999]

names = st.sampled_from(["s", "n", "no", "k", "n", "k", "other", "o", "", "nn", "\\u006b", "k\\u0000", "ä"])
edges = st.builds(lambda number, sign: f"{sign}{number}", st.sampled_from(EDGES), st.sampled_from(["", "-"]))
scalars = st.one_of(odd_integers.map(str), odd_tokens, strings, st.sampled_from(NUMBERS), edges)
lists = st.one_of(plain_keys, unsigned_keys, listed(edges), listed(scalars), listed(listed(scalars)), st.just("[ ]"))
members = st.one_of(
    st.tuples(st.sampled_from(["n", "no"]), st.integers(-(2**63), 2**63 - 1).map(str)),
    st.tuples(st.just("k"), plain_keys),
    st.tuples(st.sampled_from(["s", "t"]), strings),
    st.tuples(st.just("other"), st.sampled_from(["5", "1.5", "true", "false", "null", '"text"', "-1e5"])),
    st.tuples(names, st.one_of(scalars, lists, st.just("{}"))),
)
blanks = st.sampled_from(["", "", " ", "\t", "\r", " \t "])


@st.composite
def lines(draw: st.DrawFn) -> str:
    def blank() -> str:
        return draw(blanks)

    parts = [
        f'{blank()}"{name}"{blank()}:{blank()}{value}{blank()}' for name, value in draw(st.lists(members, max_size=5))
    ]
    line = blank() + "{" + ",".join(parts) + "}" + blank()
    return draw(st.sampled_from([line, line, line, line, line[:-1], line + "}", line.replace(",", ",,", 1), blank()]))


def mutated(line: str, place: int, character: str) -> str:
    at = place % (len(line) + 1)
    return line[:at] + character + line[at + 1 :]


anything = st.one_of(
    lines(), st.builds(mutated, lines(), st.integers(0, 200), st.sampled_from('{}[]",:0-.e 9a\\\x00\x7f'))
)


def taken(text: str) -> list[dict[str, Any] | None]:
    """Of each line the wanted members; None: it was not taken."""
    content = text.encode() + b"\n"
    read = read_flat(Window(content, range(content.count(b"\n"))), WANTED, KEYS, TEXTS)
    found: list[dict[str, Any] | None] = []
    for line in range(len(read.is_flat)):
        if not read.is_flat[line]:
            found.append(None)
            continue
        members: dict[str, Any] = {
            name: int(read.values[line, place]) for place, name in enumerate(WANTED) if read.given[line, place]
        }
        for place, name in enumerate(TEXTS):
            if read.given[line, len(WANTED) + place]:
                begin, end = read.bounds[line, 2 * place : 2 * place + 2].tolist()
                members[name] = content[begin:end].decode()
        if read.given[line, -1]:
            first = read.key_firsts[line]
            members[KEYS] = read.keys[first : first + read.key_counts[line]].tolist()
        found.append(members)
    return found


@settings(max_examples=1500, deadline=None)
@given(written=st.lists(anything, min_size=1, max_size=4))
@example(['{"k": [1,2], "n": 5}', "", '{"k": [[1], 2]}', '{"n": 1.5}'])
@example(['{"k":[18446744073709551616]}', '{"k":[18446744073709551615,-9223372036854775808]}'])
def test_it_never_finds_what_the_slow_reader_does_not(written: list[str]) -> None:
    for line, found in zip(written, taken("\n".join(written)), strict=True):
        if found is None:
            continue
        try:
            slow = read_object(line.strip().encode())
        except FormatError as error:
            raise AssertionError(f"{line!r} was taken, and is refused: {error}") from None
        expected = {name: slow[name] for name in (*WANTED, *TEXTS) if name in slow}
        if KEYS in slow:
            expected[KEYS] = block_keys_array(slow[KEYS]).tolist()
        assert found == expected
        assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"n":1,"no":-2,"k":[3,4]}', {"n": 1, "no": -2, "k": [3, 4]}),
        (' {\t"k" : [ -1 , 18446744073709551615 ] , "n" : -9223372036854775808 } \r', {"n": -(2**63), "k": [-1, -1]}),
        ('{"n": 0, "x": "a [text] {}", "f": -1.5e-7, "b": true, "c": false, "z": null}', {"n": 0}),
        ('{"s": "", "t" : "a [text] {}" , "n": 7}', {"n": 7, "s": "", "t": "a [text] {}"}),
        ('{"k": []}', {"k": []}),
        ('{"k": [9223372036854775808, 10000000000000000000]}', {"k": [-(2**63), 10**19 - 2**64]}),
    ],
)
def test_what_is_usual_is_taken(line: str, found: dict[str, Any]) -> None:
    assert taken(line) == [found]


@pytest.mark.parametrize(
    "line",
    [
        '{"n": 9223372036854775808}',
        '{"s": null}',
        '{"s": 1}',
        '{"s": "ä"}',
        '{"s": "\\n"}',
        '{"n": 1.0}',
        '{"n": null}',
        '{"k": ["1"]}',
        "[1]",
    ],
)
def test_what_is_unusual_is_left(line: str) -> None:
    assert taken(line) == [None]


def test_a_line_that_is_cut_anywhere_leaves_those_after_it() -> None:
    whole = '{ "n": -1, "k" : [ 1 , -2,3 ] , "s": "text", "x": -1.5e+7, "y": null, "k2": [4] }'
    after = ['{"n": 2, "k": [5, 6]}', '{"k": [7]}']
    for end in range(len(whole)):
        assert taken("\n".join([whole[:end], *after])) == [None, {"n": 2, "k": [5, 6]}, {"k": [7]}], whole[:end]


@pytest.mark.parametrize(
    ("text", "records", "reason"),
    [
        (b"{}\n{}", 2, r"ends without a line feed: b'{}\\n{}'"),
        (b"{}\n", 2, "has 2 records, but 1 line feeds"),
        (b"", 1, "has 1 records, but 0 line feeds"),
        (b"{}\n\n{}\n", 2, "has 2 records, but 3 line feeds"),
        (b"\n", 0, "has 0 records, but 1 line feeds"),
    ],
)
def test_a_window_must_hold_its_records(text: bytes, records: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_flat(Window(text, range(records)), WANTED, KEYS)


def test_a_blank_line_is_told() -> None:
    read = read_flat(Window(b"\n \t\r\n{}\n", range(3)), WANTED, KEYS)
    assert read.is_blank.tolist() == [True, True, False]
    assert not read.is_flat.any()
