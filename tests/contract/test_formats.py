"""What every input format must do, whatever its records look like."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from litehit.errors import InvalidRequest, OptionError
from litehit.registry import Registry
from litehit.request import Request
from schemas.dead_letter import FORMAT_HEADER, Reason
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.base import FormatError, RecordContext
from service.lanes.lane import Lane, LaneTargets
from service.lanes.reading import read_records
from service.records import SourceRecord, SourceRecords
from tests.format_samples import SAMPLES, Plain, drop, put

CONTEXT = RecordContext(instance_id="default", position=7, timestamp_ns=99)

every_format = pytest.mark.parametrize("name", LINE_FORMATS)


def encode(record: Any) -> bytes:
    return json.dumps(record).encode()


def sample(name: str, keys: list[Any], tail: int = 0, time_ms: int = 0) -> dict[str, Any]:
    of = SAMPLES[FormatName(name)]
    return of.record(Plain(keys, tail, time_ms, of.block))


def read(name: str, record: Any, context: RecordContext = CONTEXT) -> Request:
    request = formats.get(name).parse(record if isinstance(record, bytes) else encode(record), context)
    assert isinstance(request, Request)
    return request.at_block(SAMPLES[FormatName(name)].block)


def refusal(name: str, record: bytes, context: RecordContext = CONTEXT) -> FormatError:
    with pytest.raises(FormatError) as caught:
        formats.get(name).parse(record, context)
    return caught.value


def test_every_format_has_a_sample() -> None:
    assert SAMPLES.keys() == set(LINE_FORMATS)


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(
        OptionError, match="format 'csv' is unknown; use one of native, native-protobuf, tair, tair-publisher"
    ):
        formats.get("csv")


@every_format
def test_it_knows_its_name(name: str) -> None:
    assert formats.get(name).name == name


@every_format
@pytest.mark.parametrize("tail", [0, 1, 15])
@pytest.mark.parametrize("keys", [[], [0], [5, 6, 7]])
def test_a_request_is_read(name: str, keys: list[int], tail: int) -> None:
    of = SAMPLES[FormatName(name)]
    request = read(name, sample(name, keys, tail, 3))
    assert request.block_keys.dtype == "int64"
    assert request.block_keys.tolist() == of.read_as(keys)
    assert request.input_token_len == (of.block * len(keys) + tail if of.states_length else 0)
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
    of = SAMPLES[FormatName(name)]
    for keys, expected in (([key], [as_int64]), ([-7, key], [-7, as_int64]), ([2**64 - 2, key], [-2, as_int64])):
        texts = [str(each) for each in keys]
        # Sixteen digits are hexadecimal there.
        either = name == FormatName.LITELLM and any(len(text) == 16 for text in texts)
        for written in (keys, keys if either else texts):
            assert read(name, sample(name, written)).block_keys.tolist() == of.read_as(expected)


@every_format
@pytest.mark.parametrize("digits", [16, 32, 64, 128])
def test_keys_may_be_hexadecimal(name: str, digits: int) -> None:
    keys = [0, 255, 2**63 + 0xF5, 0xABCDEFABCDEFABCD]
    written = [f"{key:016x}".ljust(digits, "7") for key in keys]
    for texts in (written, [text.upper() for text in written], [*written[:3], keys[3]]):
        assert read(name, sample(name, texts)).block_keys.tolist() == SAMPLES[FormatName(name)].read_as(keys)


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
    error = refusal(name, encode(sample(name, [4, key, 6])))
    assert error.reason is reason
    assert f"{SAMPLES[FormatName(name)].keys[-1]}[1] = " in str(error)
    assert "; send an integer" in str(error)


@every_format
@pytest.mark.parametrize(("key", "words"), [(1.5, "= 1.5 is a float"), (None, "= None is null"), (True, "is a bool")])
def test_a_key_of_another_kind_is_told_in_words_of_json(name: str, key: Any, words: str) -> None:
    assert words in str(refusal(name, encode(sample(name, [4, key]))))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mooncake", "the partial last one included, or state the block_size"),
        ("bailian", "the partial last one included"),
        ("dynamo", "the partial last one included, or state the trace_block_size"),
        (
            "litellm",
            "the partial last one included, and register the block size of the keys "
            "(trace_block_size_tokens; without it block_size_tokens)",
        ),
        ("sglang", "the partial last one included, or state the block_size"),
    ],
)
def test_a_wrong_number_of_keys_says_what_its_format_can_state(name: str, words: str) -> None:
    record = put(sample(name, [1, 2], 5), SAMPLES[FormatName(name)].keys, [1])
    with pytest.raises(InvalidRequest) as caught:
        read(name, record)
    assert str(caught.value).endswith(words)


@every_format
@pytest.mark.parametrize("keys", [5, "12", None, {"0": 1}])
def test_keys_that_are_no_list_are_refused(name: str, keys: Any) -> None:
    error = refusal(name, encode(put(sample(name, []), SAMPLES[FormatName(name)].keys, keys)))
    assert error.reason is Reason.KEY_TYPE
    assert "send a list of integers" in str(error)


@every_format
def test_absent_keys_are_refused(name: str) -> None:
    record = drop(sample(name, [1]), SAMPLES[FormatName(name)].keys)
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
    error = refusal(name, b"\xef\xbb\xbf" + encode(sample(name, [1])))
    assert error.reason is Reason.MALFORMED_JSON
    assert "begins with a byte order mark; send UTF-8 without one" in str(error)


@every_format
def test_the_time_is_the_records_own_where_the_field_is_absent(name: str) -> None:
    of = SAMPLES[FormatName(name)]
    for absent in (put(sample(name, [1]), of.time, None), drop(sample(name, [1]), of.time)):
        assert read(name, absent).timestamp_ns == 99
        error = refusal(name, encode(absent), RecordContext("default", 7, None))
        assert error.reason is Reason.TIME_MISSING
        assert str(of.time[-1]) in str(error)


@every_format
@pytest.mark.parametrize("time", ["5", True, 2**63, [1]])
def test_a_bad_time_is_refused_by_name_and_value(name: str, time: Any) -> None:
    of = SAMPLES[FormatName(name)]
    error = refusal(name, encode(put(sample(name, [1]), of.time, time)))
    assert error.reason is Reason.INVALID_FIELD
    assert str(of.time[-1]) in str(error)
    assert repr(time) in str(error)


@every_format
def test_no_instance_anywhere_is_refused(name: str) -> None:
    if name == FormatName.DYNAMO:
        assert read(name, sample(name, [1]), RecordContext(None, 7, None)).instance_id == "m"
        record = drop(sample(name, [1]), ("request", "model"))
    else:
        record = sample(name, [1])
    error = refusal(name, encode(record), RecordContext(None, 7, None))
    assert error.reason is Reason.INSTANCE_MISSING


@every_format
def test_unknown_fields_are_ignored(name: str) -> None:
    record = sample(name, [1, 2]) | {"other": {"deep": [[1], {"keys": 2}]}}
    assert read(name, record).block_keys.tolist() == SAMPLES[FormatName(name)].read_as([1, 2])


@every_format
def test_threads_do_not_disturb_each_other(name: str) -> None:
    records = [encode(sample(name, list(range(i, i + 50)), 0, i)) for i in range(200)]
    with ThreadPoolExecutor(4) as pool:
        requests = list(pool.map(lambda record: formats.get(name).parse(record, CONTEXT), records))
    assert [request.block_keys.tolist() for request in requests if isinstance(request, Request)] == [
        SAMPLES[FormatName(name)].read_as(range(i, i + 50)) for i in range(200)
    ]


def test_dynamo_may_be_wrapped() -> None:
    bare = sample("dynamo", [1, 2], 3, 5)
    wrapped = read("dynamo", {"timestamp": 1, "event": bare})
    assert wrapped.block_keys.tolist() == [1, 2]
    assert (wrapped.timestamp_ns, wrapped.trace_id) == (5_000_000, "r")
    unusual = read("dynamo", {"event": bare | {"note": "an escape: \\n"}})
    assert unusual.block_keys.tolist() == [1, 2]


BAD_LINES = [
    ("native", b'{"block_keys":[1]}', Reason.UNKNOWN_TYPE, "type is absent; send"),
    ("tair", b'{"keys":[1]}', Reason.UNKNOWN_TYPE, "this is the trace's old form, which is not read"),
    ("tair", b'{"type":"put","keys":[1]}', Reason.UNKNOWN_TYPE, "type = 'put' is unknown; send"),
    ("tair-publisher", b'{"type":"get","keys":[1]}', Reason.UNKNOWN_TYPE, "'get' is unknown; send 'GetCacheLocation'"),
    ("tair-publisher", b'{"keys":[1]}', Reason.UNKNOWN_TYPE, "type = None is unknown"),
    (
        "mooncake",
        b'{"timestamp":0,"input_length":20,"hash_ids":[0,1]}',
        Reason.LENGTH_MISMATCH,
        "hash_ids has 2 keys, but input_length 20 has 1 block of 512 tokens (rounded up); send one key for each block",
    ),
    (
        "bailian",
        b'{"chat_id":1,"timestamp":0,"input_length":20,"hash_ids":[0]}',
        Reason.LENGTH_MISMATCH,
        "hash_ids has 1 key, but input_length 20 has 2 blocks of 16 tokens (rounded up)",
    ),
    ("bailian", b'{"timestamp":0,"hash_ids":[0]}', Reason.INVALID_FIELD, "input_length is absent; send an integer"),
    ("sglang", b'{"hash_ids":[0],"input_length":5}', Reason.INVALID_FIELD, "block_size is absent; send an integer"),
    (
        "sglang",
        b'{"hash_ids":[0],"input_length":5,"block_size":1}',
        Reason.LENGTH_MISMATCH,
        "input_length 5 has 5 blocks of 1 token (rounded up)",
    ),
    (
        "litellm",
        b'{"prefix_block_hashes":["0123456789abcdeg"]}',
        Reason.KEY_TYPE,
        "prefix_block_hashes[0] = '0123456789abcdeg' writes no key; send an integer, or as a string",
    ),
    (
        "litellm",
        b'{"prefix_block_hashes":[],"prompt_tokens":-1}',
        Reason.INVALID_FIELD,
        "prompt_tokens = -1 is refused",
    ),
    ("dynamo", b'{"request":{}}', Reason.UNKNOWN_TYPE, "event_type = None is refused; send 'request_end'"),
    ("dynamo", b'{"event_type":"request_end"}', Reason.INVALID_FIELD, "request is absent; send an object"),
    (
        "dynamo",
        b'{"event_type":"request_end","request":{"replay":null}}',
        Reason.INVALID_FIELD,
        "replay = None is refused; send an object",
    ),
    ("weka", b'{"id":"s","hash_id_scope":"local"}', Reason.INVALID_FIELD, "requests = None is refused; send a list"),
    (
        "weka",
        b'{"id":"s","hash_id_scope":"local","requests":[{"t":0,"in":1,"hash_ids":[]},{"t":1,"in":1,"hash_ids":[]}]}',
        Reason.INVALID_FIELD,
        "the record is a session of 2 requests, and a record holds one; publish the sessions' file or folder",
    ),
    (
        "weka",
        b'{"id":"s","requests":[{"t":0,"in":1,"hash_ids":[]}]}',
        Reason.INVALID_FIELD,
        "hash_id_scope = None is refused; send 'local' or 'global'",
    ),
    (
        "weka",
        b'{"hash_id_scope":"local","requests":[{"t":0,"in":1,"hash_ids":[]}]}',
        Reason.INVALID_FIELD,
        "id is absent, and the keys are local to their session; add the id",
    ),
    (
        "weka",
        b'{"id":"s","hash_id_scope":"local","requests":[{"t":0,"in":64,"hash_ids":[true]}]}',
        Reason.KEY_TYPE,
        "requests[0]: hash_ids[0] = True is a bool; send an integer",
    ),
]


def test_every_format_has_bad_lines() -> None:
    assert {name for name, *_ in BAD_LINES} == set(LINE_FORMATS)


@pytest.mark.parametrize(("name", "line", "reason", "words"), BAD_LINES)
def test_a_bad_line_is_told_in_words(name: str, line: bytes, reason: Reason, words: str) -> None:
    error = refusal(name, line)
    assert words in str(error)
    assert error.reason is reason


IGNORED = [
    ("native", b'{"type":"write"}'),
    ("tair", b'{"type":"write","keys":[1]}'),
    ("tair-publisher", b'{"type":"StartWriteCache","keys":[1]}'),
    ("tair-publisher", b'{"type":"FinishWriteCache"}'),
    ("dynamo", b'{"event_type":"tool_end","tool":{}}'),
    ("dynamo", b'{"timestamp":5,"event":{"event_type":"request_payload"}}'),
]


@pytest.mark.parametrize(("name", "line"), IGNORED)
def test_what_is_no_request_is_ignored(name: str, line: bytes) -> None:
    assert formats.get(name).parse(line, CONTEXT) is None


def mutated(rng: random.Random, line: bytes) -> bytes:
    record = bytearray(line)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(record) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            record[at : at + rng.randint(0, 3)] = rng.choice(
                [b"", b"1", b"-", b"[", b"]", b"{", b"}", b",", b'"', b"\\", b".", b"e9", b"\xff", b" ", b"\0", b"null"]
            )
        elif kind == 1:
            record[at:] = b""
        elif kind == 2:
            start = rng.randrange(len(record) + 1)
            record[at:at] = record[start : start + rng.randint(1, 12)]
        else:
            record[at:at] = rng.choice([b"9" * 30, b'"\\u0000"', b"[" * 40, b"1e999999999", b'"ffffffffffffffff",'])
    return bytes(record)


@every_format
def test_mutated_lines_are_requests_ignored_or_refused(name: str) -> None:
    rng = random.Random(f"lines of {name}")
    lines = [encode(sample(name, keys, 3, 1500)) for keys in ([1, 2**64 - 1], ["1", "-7"], [f"{7:016x}", f"{8:016x}"])]
    read, refused = 0, 0
    for _ in range(1500):
        try:
            request = formats.get(name).parse(mutated(rng, rng.choice(lines)), CONTEXT)
        except FormatError:
            refused += 1
            continue
        if isinstance(request, Request):
            assert request.block_keys.dtype == "int64"
            assert -(2**63) <= request.timestamp_ns < 2**63
            read += 1
    assert min(read, refused) > 20


def test_mutated_lines_keep_the_ledger_balanced(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(
        "groups: [{name: g}]\ninstances: [{instance_id: key, group: g, block_size_tokens: 16, block_bytes: 1024}]\n",
        encoding="utf-8",
    )
    rng = random.Random(5)
    records = []
    for offset in range(4000):
        name = rng.choice(LINE_FORMATS)
        line = encode(SAMPLES[name].record(Plain([1, 2, 2**64 - 1], 3, 1500, 16)))
        value = line if rng.random() < 0.3 else mutated(rng, line)
        headers = () if name is FormatName.NATIVE else ((FORMAT_HEADER, name.encode()),)
        records.append(SourceRecord("requests", 0, offset, b"key", value, 7, headers))
    lane = Lane(0, Registry.load(path), LaneTargets("facts", "dead", 1_000_000))
    output = lane.process(read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of(records)))
    counts = output.counts
    assert counts.consumed == 4000
    assert counts.consumed == counts.facts + sum(counts.dead_letters.values()) + sum(counts.ignored.values())
    assert (len(output.facts), len(output.dead_letters)) == (counts.facts, sum(counts.dead_letters.values()))
    assert min(counts.facts, len(output.dead_letters)) > 500
