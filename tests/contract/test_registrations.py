"""A registration says the same in every encoding that has one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.registration import Registration
from litehit.window import Window
from schemas.dead_letter import Reason
from service import formats
from service.format_names import FormatName
from service.formats.base import FormatError, RecordContext
from service.formats.window_reader import window_reader
from service.lanes.read_records import Poison
from service.lanes.reading import read_records
from service.records import SourceRecord, SourceRecords
from tests.registration_events import ENCODINGS, Encode, in_json, in_protobuf

every_encoding = pytest.mark.parametrize("encode", ENCODINGS)
TOKENS = st.integers(1, 2**31 - 1)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "block_size_tokens": TOKENS,
        "block_bytes": st.integers(1, 2**63 - 1),
        "enable_prefix_hash": st.booleans(),
        "ttl_seconds": st.integers(0, 10**9) | st.integers(0, 10**12).map(lambda number: number / 1000),
        "capacity_gb": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    },
).flatmap(lambda fields: st.sampled_from([fields, fields | {"reset": True}]))


def read(value: bytes, headers: Any = (), key: bytes | None = b"key") -> Any:
    record = SourceRecord("requests", 0, 9, key, value, 7, headers)
    ((_, other),) = read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of([record])).others
    return other


@every_encoding
def test_every_field_is_read(encode: Encode) -> None:
    fields = {
        "block_size_tokens": 512,
        "trace_block_size_tokens": 128,
        "location_specs": {"tp0": 100, "tp1": 200},
        "ttl_seconds": 1.5,
        "enable_prefix_hash": True,
        "capacity_gb": [8, -1],
        "reset": True,
    }
    assert read(*encode("chat-a", **fields)) == Registration(
        "chat-a", 512, 128, 300, True, 1_500_000_000, (8.0, -1.0), True
    )


@every_encoding
def test_what_is_absent_is_not_stated_and_an_empty_list_of_slots_is(encode: Encode) -> None:
    assert read(*encode("chat-a", block_bytes=5)) == Registration("chat-a", block_bytes=5)
    assert read(*encode("chat-a", capacity_gb=[], enable_prefix_hash=False)) == Registration(
        "chat-a", capacity_gb=(), enable_prefix_hash=False
    )
    assert read(*encode("chat-a", reset=True)) == Registration("chat-a", reset=True)


@every_encoding
def test_the_instance_may_be_the_records_key(encode: Encode) -> None:
    assert read(*encode(None, block_bytes=5)) == Registration("key", block_bytes=5)
    poison = read(*encode(None, block_bytes=5), key=None)
    assert isinstance(poison, Poison)
    assert poison.reason is Reason.INSTANCE_MISSING


@given(FIELDS)
def test_both_encodings_are_read_alike(fields: dict[str, Any]) -> None:
    assert read(*in_json("chat-a", **fields)) == read(*in_protobuf("chat-a", **fields))


@every_encoding
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "states nothing; send block_bytes, block_size_tokens"),
        ({"block_size_tokens": 0}, "block_size_tokens = 0: must be greater"),
        ({"block_size_tokens": 2**31}, "block_size_tokens = 2147483648: must be less"),
        ({"block_size_tokens": 6, "trace_block_size_tokens": 4}, "trace_block_size_tokens = 4: must divide"),
        ({"trace_block_size_tokens": 4}, "trace_block_size_tokens = 4: needs block_size_tokens beside it"),
        ({"block_bytes": 0}, "block_bytes = 0: must be greater"),
        ({"block_bytes": 1, "location_specs": {"a": 1}}, "location_specs = {'a': 1}: excludes block_bytes"),
        ({"location_specs": {"a": -1}}, "location_specs.a = -1: must be greater"),
        ({"ttl_seconds": -1.0}, "ttl_seconds = -1.0: must be greater"),
        ({"ttl_seconds": 1e-10}, "ttl_seconds = 1e-10: must be a whole number of nanoseconds"),
    ],
)
def test_what_is_wrong_is_refused_with_field_and_value(encode: Encode, fields: dict[str, Any], words: str) -> None:
    poison = read(*encode("chat-a", **fields))
    assert isinstance(poison, Poison)
    assert poison.reason is Reason.INVALID_FIELD
    assert words in poison.sentence


@pytest.mark.parametrize(
    "fields",
    [{"block_bytes": True}, {"block_bytes": "5"}, {"ttl_seconds": "1"}, {"capacity_gb": 5}, {"reset": 1}],
)
def test_json_of_another_type_is_refused(fields: dict[str, Any]) -> None:
    poison = read(*in_json("chat-a", **fields))
    assert isinstance(poison, Poison)
    assert poison.reason is Reason.INVALID_FIELD
    assert next(iter(fields)) in poison.sentence


@pytest.mark.parametrize("name", [name for name in formats.FORMATS if not name.startswith("native")])
def test_no_other_format_registers(name: str) -> None:
    value, _ = in_json("chat-a", block_bytes=5)
    with suppress(FormatError):
        assert formats.get(name).parse(value, RecordContext("i", 1, 1)) is None


def test_an_offline_replay_refuses_it() -> None:
    record = json.dumps({"type": "register", "instance_id": "chat-a", "block_bytes": 5}).encode()
    read = window_reader(formats.get(FormatName.NATIVE), "i")(Window(record + b"\n", [7]))
    assert read.fault is not None
    assert read.fault[0] == 7
    assert "registers 'chat-a', which only the topic takes" in str(read.fault[1])
