from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.request import EVENT, RequestEvent, WriteEvent
from service.formats.fast_event import WRITE, EventFields, read_fast_event

FULL = (
    b'{"type":"get","instance_id":"a","trace_id":"t","timestamp_ns":5,"keys":[1,-2,3],"input_len":7,'
    b'"query_type":"prefix_match","block_mask":[true,false],"sw_size":0,"location_spec_names":["x"],"ttl_us":1}'
)

odd_integers = st.sampled_from(
    [0, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 10**40]
)
odd_tokens = st.sampled_from(
    ["-0", "1.0", "1e3", "0.1", "1E400", "NaN", "Infinity", "-Infinity", "01", "+1", "true", "false", "null", "", "0x1"]
)
strings = st.one_of(
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(['"\\ud800"', '"\\u0000"', '"a[b"', '"a{b"', '"\\"', '"\t"', '"request"', '"get"', '"write"']),
)
scalars = st.one_of(odd_integers.map(str), st.integers(-5, 5).map(str), odd_tokens, strings)


def listed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]")


plain_keys = listed(st.integers(-(2**63), 2**64 - 1).map(str))
unsigned_keys = listed(st.integers(0, 2**64 - 1).map(str))
values = st.one_of(
    scalars,
    plain_keys,
    unsigned_keys,
    listed(scalars),
    listed(st.one_of(scalars, listed(scalars))),
    listed(st.just('{"a":1}')),
    st.sampled_from(["{}", '{"keys":[1]}', "[" * 300 + "]" * 300, "[[[]]]", '{"a":' * 250 + "1" + "}" * 250]),
)
known = ["type", "instance_id", "trace_id", "timestamp_ns", "block_keys", "keys", "input_token_len", "input_len"]
names = st.sampled_from([*known, "other", "keys\\u0000", "k\\u0065ys", "type\\u0000", "block_keys\\u0000x"])
members = st.lists(st.tuples(names, values), max_size=5).map(
    lambda pairs: [f'"{name}":{value}' for name, value in pairs]
)
usual = st.sampled_from(['"type":"request"', '"type":"get"', '"type":"write"', '"keys":[1,2]', '"block_keys":[3]'])


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """A request event with odd members, some twice, then perhaps with bytes put in, out or changed."""
    listed_members = draw(st.lists(usual, max_size=4, unique=True)) + draw(members)
    draw(st.randoms(use_true_random=False)).shuffle(listed_members)
    record = ("{" + draw(st.sampled_from([",", ", ", " ,\n"])).join(listed_members) + "}").encode(
        "utf-8", "surrogatepass"
    )
    record = draw(st.sampled_from([b"", b"", b"", b" ", b"\xef\xbb\xbf", b"[", b"\0"])) + record
    record += draw(st.sampled_from([b"", b"", b"", b"\n", b" \r\n", b"\0", b"x", b"{}", b"]"]))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(record)))
        cut = draw(st.integers(0, 2))
        record = record[:at] + draw(st.binary(max_size=2)) + record[at + cut :]
    return record


def by_model(record: bytes) -> Any:
    event = EVENT.validate_json(record)
    if isinstance(event, WriteEvent):
        return WRITE
    assert isinstance(event, RequestEvent)
    return (event.instance_id, event.trace_id, event.timestamp_ns, event.block_keys.tolist(), event.input_token_len)


def comparable(fields: Any) -> Any:
    return (
        (*fields[:3], fields.block_keys.tolist(), fields.input_token_len) if isinstance(fields, EventFields) else fields
    )


@settings(max_examples=600, deadline=None)
@given(records())
@example(b'{"type":"get","keys":[[1],2]}')
@example(b'{"type":"get","keys":[[1],2],"keys\\u0000":5}')
@example(b'{"type":"get","keys":[1],"keys":[2]}')
@example(b'{"type":"get","keys":[1],"block_keys":[2],"input_len":5,"input_token_len":6}')
@example(b'\xef\xbb\xbf{"type":"get","keys":[1]}')
@example(b'{"type":"get","keys":[1],"x":' + b"[" * 300 + b"]" * 300 + b"}")
@example(b'{"type":"get","keys":[-1,18446744073709551615]}')
@example(b'{"type":"get","keys":[true]}')
@example(b'{"type":"get","keys":[1],"trace_id":"\xff"}')
@example(b'{"type":"get","keys":[1],"timestamp_ns":-0}')
@example(b'{"type":"write","type":"get","keys":[]}')
def test_what_it_takes_is_what_the_model_says(record: bytes) -> None:
    fast = read_fast_event(record)
    if fast is not None:
        assert comparable(fast) == by_model(record)


def test_mutations_of_a_full_line_agree() -> None:
    rng = random.Random(7)
    taken = 0
    for _ in range(10_000):
        record = bytearray(FULL)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(record))
            record[at : at + rng.randint(0, 2)] = rng.choice(
                [b"", b"1", b"-", b"[", b"]", b"{", b"}", b",", b'"', b"\\", b".", b"e", b"\xff", b" ", b"\0"]
            )
        fast = read_fast_event(bytes(record))
        if fast is None:
            continue
        taken += 1
        try:
            expected = by_model(bytes(record))
        except ValidationError as error:
            pytest.fail(f"the model refuses what the fast path took: {bytes(record)!r}: {error}")
        assert comparable(fast) == expected
    assert taken > 500


@pytest.mark.parametrize(
    "record",
    [
        FULL,
        b'{"type":"request","block_keys":[],"input_token_len":7}\n',
        b'{"type":"get","keys":[18446744073709551615,0]}',
        b'{"type":"get","instance_id":null,"timestamp_ns":null,"keys":[-9223372036854775808]}',
        '{"type":"get","trace_id":"né","keys":[]}'.encode(),
        b'{"type":"write","keys":[1,2],"block_mask":[true]}',
    ],
)
def test_it_takes_usual_records(record: bytes) -> None:
    fast = read_fast_event(record)
    assert fast is not None
    assert comparable(fast) == by_model(record)


def test_keys_outlive_the_parser() -> None:
    first = read_fast_event(b'{"type":"get","keys":[1,2,3]}')
    for _ in range(100):
        read_fast_event(b'{"type":"get","keys":[9,9,9]}')
    assert isinstance(first, EventFields)
    assert first.block_keys.tolist() == [1, 2, 3]
    assert first.block_keys.dtype == np.int64
