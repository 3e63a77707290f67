"""What every input format must do, whatever its records look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from litehit.errors import OptionError
from schemas.dead_letter import Reason
from service import formats
from service.formats.base import FormatError, RecordContext

BLOCK = 512
CONTEXT = RecordContext(instance_id="default", position=7, timestamp_ns=99)


@dataclass(frozen=True)
class Sample:
    """How to write a record of one format.

    Attributes:
        record: fields of a request with the given keys, all of full blocks, `tail` tokens after them, and a time.
        time_field, key_field: names of its fields.
    """

    record: Callable[[list[Any], int, int], dict[str, Any]]
    time_field: str
    key_field: str


def native(keys: list[Any], tail: int, time_ms: int) -> dict[str, Any]:
    return {
        "type": "request",
        "trace_id": "t",
        "timestamp_ns": time_ms * 1_000_000,
        "block_keys": keys,
        "input_token_len": BLOCK * len(keys) + tail,
    }


def tair(keys: list[Any], tail: int, time_ms: int) -> dict[str, Any]:
    return {
        "type": "get",
        "trace_id": "t",
        "timestamp_ns": time_ms * 1_000_000,
        "keys": keys,
        "input_len": BLOCK * len(keys) + tail,
        "query_type": "prefix_match",
        "block_mask": [True] * len(keys),
        "sw_size": 0,
        "location_spec_names": ["tp0"],
        "ttl_us": 0,
    }


def mooncake(keys: list[Any], tail: int, time_ms: int) -> dict[str, Any]:
    partial = [12345] if tail else []
    return {
        "timestamp": time_ms,
        "input_length": BLOCK * len(keys) + tail,
        "output_length": 1,
        "hash_ids": keys + partial,
    }


SAMPLES = {
    "native": Sample(native, "timestamp_ns", "block_keys"),
    "tair": Sample(tair, "timestamp_ns", "keys"),
    "mooncake": Sample(mooncake, "timestamp", "hash_ids"),
}

every_format = pytest.mark.parametrize("name", formats.FORMATS)


def encode(record: Any) -> bytes:
    return json.dumps(record).encode()


def refusal(name: str, record: bytes, context: RecordContext = CONTEXT) -> FormatError:
    with pytest.raises(FormatError) as caught:
        formats.get(name).parse(record, context)
    return caught.value


def test_every_format_has_a_sample() -> None:
    assert SAMPLES.keys() == formats.FORMATS.keys()


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match="format 'csv' is unknown; use one of native, tair, mooncake"):
        formats.get("csv")


@every_format
def test_it_knows_its_name(name: str) -> None:
    assert formats.get(name).name == name


@every_format
@pytest.mark.parametrize("tail", [0, 1, BLOCK - 1])
@pytest.mark.parametrize("keys", [[], [0], [5, 6, 7]])
def test_a_request_is_read(name: str, keys: list[int], tail: int) -> None:
    request = formats.get(name).parse(encode(SAMPLES[name].record(keys, tail, 3)), CONTEXT)
    assert request is not None
    assert request.block_keys.dtype == "int64"
    assert request.block_keys.tolist() == keys
    assert request.input_token_len == BLOCK * len(keys) + tail
    assert request.timestamp_ns == 3_000_000
    assert request.instance_id == "default"
    assert request.trace_id


@every_format
@pytest.mark.parametrize(
    ("key", "as_int64"),
    [
        (2**64 - 1, -1),
        (-1, -1),
        (2**63, -(2**63)),
        (-(2**63), -(2**63)),
        (2**53 + 1, 2**53 + 1),
        (2**53, 2**53),
        (0, 0),
    ],
)
def test_keys_are_exact_64_bit_integers(name: str, key: int, as_int64: int) -> None:
    for keys, expected in (([key], [as_int64]), ([-7, key], [-7, as_int64]), ([2**64 - 2, key], [-2, as_int64])):
        request = formats.get(name).parse(encode(SAMPLES[name].record(keys, 0, 0)), CONTEXT)
        assert request is not None
        assert request.block_keys.tolist() == expected


@every_format
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (True, Reason.KEY_TYPE),
        (None, Reason.KEY_TYPE),
        (1.5, Reason.KEY_TYPE),
        (1.0, Reason.KEY_TYPE),
        ("one", Reason.KEY_TYPE),
        ("1.0", Reason.KEY_TYPE),
        ("0x00000000000000ff", Reason.KEY_TYPE),
        ("00000000000000fg", Reason.KEY_TYPE),
        ([1], Reason.KEY_TYPE),
        ({"a": 1}, Reason.KEY_TYPE),
        (2**64, Reason.KEY_OUT_OF_RANGE),
        (-(2**63) - 1, Reason.KEY_OUT_OF_RANGE),
        ("18446744073709551616", Reason.KEY_OUT_OF_RANGE),
        ("-9223372036854775809", Reason.KEY_OUT_OF_RANGE),
        ("9" * 5000, Reason.KEY_OUT_OF_RANGE),
    ],
)
def test_a_bad_key_is_refused_with_its_position(name: str, key: Any, reason: Reason) -> None:
    error = refusal(name, encode(SAMPLES[name].record([4, key, 6], 0, 0)))
    assert error.reason is reason
    assert "[1] = " in str(error)
    assert "; send an integer" in str(error)


@every_format
@pytest.mark.parametrize("keys", [5, "12", None, {"0": 1}])
def test_keys_that_are_no_list_are_refused(name: str, keys: Any) -> None:
    record = SAMPLES[name].record([], 0, 0)
    record[SAMPLES[name].key_field] = keys
    error = refusal(name, encode(record))
    assert error.reason is Reason.KEY_TYPE
    assert "send a list of integers" in str(error)


@every_format
def test_absent_keys_are_refused(name: str) -> None:
    record = SAMPLES[name].record([1], 0, 0)
    del record[SAMPLES[name].key_field]
    assert "is absent; send" in str(refusal(name, encode(record)))


@every_format
@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", Reason.EMPTY_VALUE),
        (b"  ", Reason.MALFORMED_JSON),
        (b"{", Reason.MALFORMED_JSON),
        (b"nonsense", Reason.MALFORMED_JSON),
        (b"{} {}", Reason.MALFORMED_JSON),
        (b'{"a":"\xff"}', Reason.MALFORMED_JSON),
        (b"[" * 100_000, Reason.MALFORMED_JSON),
        (b"[1]", Reason.INVALID_FIELD),
        (b"null", Reason.INVALID_FIELD),
    ],
)
def test_what_is_no_json_object_is_refused(name: str, record: bytes, reason: Reason) -> None:
    error = refusal(name, record)
    assert error.reason is reason
    assert "send one JSON object" in str(error)


@every_format
def test_a_byte_order_mark_is_refused(name: str) -> None:
    error = refusal(name, b"\xef\xbb\xbf" + encode(SAMPLES[name].record([1], 0, 0)))
    assert error.reason is Reason.MALFORMED_JSON
    assert "begins with a byte order mark; send UTF-8 without one" in str(error)


@every_format
def test_the_time_is_the_records_own_where_the_field_is_absent(name: str) -> None:
    record = SAMPLES[name].record([1], 0, 3)
    for absent in ({**record, SAMPLES[name].time_field: None}, record):
        absent.pop(SAMPLES[name].time_field, None)
        request = formats.get(name).parse(encode(absent), CONTEXT)
        assert request is not None
        assert request.timestamp_ns == 99
        error = refusal(name, encode(absent), RecordContext("default", 7, None))
        assert error.reason is Reason.TIME_MISSING
        assert SAMPLES[name].time_field in str(error)


@every_format
@pytest.mark.parametrize("time", ["5", True, 2**63, [1]])
def test_a_bad_time_is_refused_by_name_and_value(name: str, time: Any) -> None:
    record = SAMPLES[name].record([1], 0, 3)
    record[SAMPLES[name].time_field] = time
    error = refusal(name, encode(record))
    assert error.reason is Reason.INVALID_FIELD
    assert SAMPLES[name].time_field in str(error)
    assert repr(time) in str(error)


@every_format
def test_no_instance_anywhere_is_refused(name: str) -> None:
    error = refusal(name, encode(SAMPLES[name].record([1], 0, 3)), RecordContext(None, 7, None))
    assert error.reason is Reason.INSTANCE_MISSING


@every_format
def test_unknown_fields_are_ignored(name: str) -> None:
    record = SAMPLES[name].record([1, 2], 0, 3) | {"other": {"deep": [[1], {"keys": 2}]}}
    request = formats.get(name).parse(encode(record), CONTEXT)
    assert request is not None
    assert request.block_keys.tolist() == [1, 2]


@every_format
def test_threads_do_not_disturb_each_other(name: str) -> None:
    records = [encode(SAMPLES[name].record(list(range(i, i + 50)), 0, i)) for i in range(400)]
    with ThreadPoolExecutor(4) as pool:
        requests = list(pool.map(lambda record: formats.get(name).parse(record, CONTEXT), records))
    assert [request.block_keys.tolist() for request in requests if request] == [
        list(range(i, i + 50)) for i in range(400)
    ]
