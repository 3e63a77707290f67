from __future__ import annotations

from typing import Any

import pytest

from litehit.errors import TraceBlockMismatch
from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext
from service.formats.mooncake import MooncakeFormat

CONTEXT = RecordContext(instance_id="m", position=7, timestamp_ns=None)


def read(line: str) -> Request:
    request = MooncakeFormat().parse(line.encode(), CONTEXT)
    assert request is not None
    return request


def refusal(line: str) -> FormatError:
    with pytest.raises(FormatError) as caught:
        MooncakeFormat().parse(line.encode(), CONTEXT)
    return caught.value


@pytest.mark.parametrize(
    ("length", "ids", "kept"),
    [(1000, [1, 2], [1]), (1024, [0, 1], [0, 1]), (1025, [0, 1, 2], [0, 1]), (1, [9], []), (0, [], [])],
)
def test_the_partial_last_block_is_dropped(length: int, ids: list[int], kept: list[int]) -> None:
    request = read(f'{{"timestamp":0,"input_length":{length},"output_length":1,"hash_ids":{ids}}}')
    assert request.block_keys.tolist() == kept
    assert request.input_token_len == length


@pytest.mark.parametrize(
    ("length", "ids", "words"),
    [
        (20, [0, 1], "2 keys, but input_length 20 has 1 block"),
        (1024, [0, 1, 2], "3 keys, but input_length 1024 has 2 blocks"),
        (513, [0], "1 key, but input_length 513 has 2 blocks"),
        (1, [], "0 keys, but input_length 1 has 1 block"),
    ],
)
def test_a_wrong_number_of_keys_names_the_rule(length: int, ids: list[int], words: str) -> None:
    error = refusal(f'{{"timestamp":0,"input_length":{length},"hash_ids":{ids}}}')
    assert error.reason is Reason.LENGTH_MISMATCH
    assert str(error).startswith(f"hash_ids has {words} of 512 tokens (rounded up); send one key for each block")


@pytest.mark.parametrize(
    ("timestamp", "nanoseconds"),
    [
        ("0", 0),
        ("27482", 27_482_000_000),
        ("1.5", 1_500_000),
        ("0.1", 100_000),
        ("1700000000123.456789", 1_700_000_000_123_456_789),
        ("1e3", 1_000_000_000),
        ("-2.5", -2_500_000),
        ("0.30000000000000004", 300_000),
        ("1e-999999999", 0),
        ("9223372036854.775807", 2**63 - 1),
    ],
)
def test_milliseconds_become_nanoseconds_without_drift(timestamp: str, nanoseconds: int) -> None:
    assert read(f'{{"timestamp":{timestamp},"input_length":0,"hash_ids":[]}}').timestamp_ns == nanoseconds


@pytest.mark.parametrize(
    "timestamp", ["9223372036854.775808", "1e400", "-1e999999999", "9223372036855", "1e99999999999999999999"]
)
def test_a_time_outside_64_bits_is_refused(timestamp: str) -> None:
    error = refusal(f'{{"timestamp":{timestamp},"input_length":0,"hash_ids":[]}}')
    assert error.reason is Reason.INVALID_FIELD
    assert "fits in 64 bits of nanoseconds" in str(error)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "9" * 5000])
def test_a_number_that_cannot_be_read_is_refused(constant: str) -> None:
    error = refusal(f'{{"timestamp":{constant},"input_length":0,"hash_ids":[]}}')
    assert error.reason is Reason.MALFORMED_JSON


@pytest.mark.parametrize(
    ("field", "value"),
    [("input_length", v) for v in ("-1", "1.0", "true", '"1"', "null", "9223372036854775808")]
    + [("block_size", v) for v in ("0", "-512", "512.0", "false")],
)
def test_a_bad_integer_is_refused_by_name(field: str, value: str) -> None:
    fields: dict[str, Any] = {"timestamp": "0", "input_length": "0", "hash_ids": "[]"} | {field: value}
    error = refusal("{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}")
    assert error.reason is Reason.INVALID_FIELD
    assert str(error).startswith(f"{field} = ")
    assert "send an integer from" in str(error)


def test_an_absent_length_is_refused() -> None:
    assert str(refusal('{"timestamp":0,"hash_ids":[]}')).startswith("input_length is absent; send an integer")


def test_the_trace_id_tells_the_record() -> None:
    line = '{"timestamp":0,"input_length":0,"hash_ids":[]}'
    assert read(line).trace_id == "mooncake-7"


def test_the_block_size_is_checked_against_the_registered_one() -> None:
    usual = read('{"timestamp":0,"input_length":600,"hash_ids":[1,2]}')
    usual.at_block(512)
    with pytest.raises(
        TraceBlockMismatch, match=r"blocks have 512 tokens, but instance 'm' .* 256; register it with 512"
    ):
        usual.at_block(256)
    stated = read('{"timestamp":0,"input_length":600,"hash_ids":[1,2,3],"block_size":256}')
    assert stated.block_keys.tolist() == [1, 2]
    stated.at_block(256)
    with pytest.raises(TraceBlockMismatch):
        stated.at_block(512)
