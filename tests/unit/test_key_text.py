"""Keys as text: every form is exact, and whole lists at once mean what each text means."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import simdjson
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.block_keys import KEY_FORMS, BlockKeyError, block_keys_array
from schemas.key_text import integer_of_text, keys_of_json_array, keys_of_strings

decimals = st.integers(-(2**63), 2**64 - 1).map(str)
hexadecimals = st.integers(0, 2**64 - 1).map("{:016x}".format)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
odd = st.sampled_from(
    ["", "0", "-0", "00", "1234567890123456", "0234567890123456", "+1", "1 ", "\t1", "1,2", "[1]", "é"]
)
texts = st.one_of(decimals, hexadecimals, digests, st.text(alphabet='0123456789abcdefABCDEF-", []', max_size=20), odd)
one_kind = st.one_of(
    st.lists(decimals, min_size=1, max_size=6),
    st.lists(hexadecimals.map(str.upper), min_size=1, max_size=6),
    st.lists(digests, min_size=1, max_size=6),
    st.lists(st.text(alphabet="0123456789", min_size=16, max_size=16), min_size=1, max_size=6),
    st.lists(texts, min_size=1, max_size=4),
)


def one_by_one(values: list[str], *, hexadecimal: bool) -> list[int] | None:
    integers = [integer_of_text(value, hexadecimal=hexadecimal) for value in values]
    if any(integer is None or not -(2**63) <= integer < 2**64 for integer in integers):
        return None
    return [integer - 2**64 if integer >= 2**63 else integer for integer in integers if integer is not None]


@settings(max_examples=400)
@given(values=one_kind, hexadecimal=st.booleans())
def test_a_list_at_once_means_what_each_text_means(values: list[str], hexadecimal: bool) -> None:
    expected = one_by_one(values, hexadecimal=hexadecimal)
    parser = simdjson.Parser()
    at_once = keys_of_json_array(parser.parse(json.dumps(values).encode()), hexadecimal=hexadecimal)
    of_list = keys_of_strings(values, hexadecimal=hexadecimal)
    for keys in (at_once, of_list):
        assert keys is None or keys.tolist() == expected
    if expected is None:
        with pytest.raises(BlockKeyError):
            block_keys_array(values, hexadecimal=hexadecimal)
    else:
        assert block_keys_array(values, hexadecimal=hexadecimal).tolist() == expected


@pytest.mark.parametrize(
    "values",
    [
        ["1", "-2", "9223372036854775807", "-9223372036854775808"],
        ["1", "18446744073709551615"],
        ["00000000000000ff", "FFFFFFFFFFFFFFFF", "1234567890123456"],
        [hashlib.md5(b"a").hexdigest()] * 3,
        [hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest()],
        [hashlib.sha512(b"a").hexdigest()],
    ],
)
def test_the_usual_lists_are_read_at_once(values: list[str]) -> None:
    keys = keys_of_json_array(simdjson.Parser().parse(json.dumps(values).encode()))
    assert keys is not None
    assert keys.tolist() == one_by_one(values, hexadecimal=False)


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("0", 0),
        ("-1", -1),
        ("18446744073709551615", 2**64 - 1),
        ("9007199254740993", 2**53 + 1),  # sixteen digits
        ("00000000000000ff", 255),
        ("FFFFFFFFFFFFFFFF", 2**64 - 1),
        ("ff" + "0" * 30, 0xFF << 56),
        ("1234567890abcdef" + "f" * 48, 0x1234567890ABCDEF),
        ("12345678" * 16, 0x1234567812345678),
        ("18446744073709551616", 2**64),
    ],
)
def test_what_a_text_means(text: str, integer: int) -> None:
    assert integer_of_text(text, hexadecimal=False) == integer


def test_sixteen_decimal_digits_are_what_the_list_is_known_to_hold() -> None:
    values = ["1234567890123456", "abcdefabcdefabcd"]
    assert block_keys_array(values).tolist()[0] == 1234567890123456
    assert block_keys_array(values, hexadecimal=True).tolist()[0] == 0x1234567890123456


def test_a_digest_and_its_first_64_bits_are_the_same_key() -> None:
    digest = hashlib.sha256(b"block").hexdigest()
    assert block_keys_array([digest]).tolist() == block_keys_array([digest[:16]], hexadecimal=True).tolist()


def test_forms_may_be_mixed() -> None:
    assert block_keys_array([-1, "18446744073709551615", "ffffffffffffffff"]).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("text", ["", "0x00000000000000ff", "00000000000000fg", "a" * 15, "a" * 17, "1.5", "1e3", "٣"])
def test_a_text_that_writes_no_key_is_named(text: str) -> None:
    with pytest.raises(BlockKeyError) as caught:
        block_keys_array([1, text])
    assert str(caught.value) == f"block_keys[1] = {text!r} writes no key; {KEY_FORMS}"
    assert not caught.value.out_of_range


def test_a_decimal_of_any_length_is_told_from_a_key() -> None:
    for digits in (20, 24, 5000):
        with pytest.raises(BlockKeyError, match="outside 64 bits"):
            block_keys_array(["1", "9" * digits])


def test_many_texts_take_no_loop() -> None:
    values = [f"{key:016x}" for key in range(100_000)]
    keys = block_keys_array(values)
    assert np.array_equal(keys, np.arange(100_000))
