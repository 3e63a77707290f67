"""A file's format is told from its first lines, or the two that it could be are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from litehit.errors import TraceError
from service import formats
from service.format_names import LINE_FORMATS, FormatName
from service.formats.recognise import SIGNS, recognise
from tests.format_samples import SAMPLES, Plain


def encode(*records: dict[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def test_every_format_has_signs() -> None:
    assert SIGNS.keys() == set(LINE_FORMATS)
    assert formats.FORMATS.keys() == set(FormatName)


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_every_format_is_recognised(name: FormatName) -> None:
    sample = SAMPLES[name]
    lines = encode(*(sample.record(Plain([1, 2], tail, 5, sample.block)) for tail in (0, 3)))
    assert recognise("x", [b"", *lines]) is name


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"timestamp": 5, "event": {"event_type": "tool_end"}}, "dynamo"),
        ({"timestamp": 0, "input_length": 5, "hash_ids": [1], "block_size": 64, "session_id": "s"}, "mooncake"),
        ({"type": "FinishWriteCache", "source": "a"}, "tair-publisher"),
        ({"type": "request", "block_keys": [1], "keys": []}, "native"),
    ],
)
def test_less_usual_records(record: dict[str, Any], name: str) -> None:
    record.pop("keys", None)
    assert recognise("x", encode(record)) == name


def test_lines_decide_together() -> None:
    lines = encode({"type": "write"}, {"type": "get", "keys": [1], "input_len": 5})
    assert recognise("x", lines) == "tair"


def test_a_session_may_take_many_lines() -> None:
    assert recognise("x", [b"{", b'  "id": "s",']) == "weka"


def test_two_it_could_be_are_named() -> None:
    line = {"timestamp": 1.5, "input_length": 64, "hash_ids": [1], "block_size": 64}
    with pytest.raises(TraceError, match=r"x: could be of format mooncake or sglang; name the one it is \(--format\)"):
        recognise("x", encode(line))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b'{"a": 1}'], r"x: line 1: is of no format that is known \(native, tair, .*\); see that the file is a trace"),
        ([b"a,b,c"], r"x: line 1: the record is not valid JSON .* or name the format"),
        ([b"", b" "] * 4, "has no record in its first 8 lines; name the format"),
        ([b"", b" "], "x: holds no record; see that it is the right file$"),
        ([], "x: holds no record; see that it is the right file$"),
        ([b"\xef\xbb\xbf{}"], r"x: line 1: the record begins with a byte order mark; .* \(a file: save it so\)$"),
        (
            encode({"prefix_block_hashes": []}, {"type": "get", "keys": []}),
            "line 2: is of format tair, but the lines before are not",
        ),
        ([b'{"type": ["get"], "keys": []}'], "line 1: is of no format"),
    ],
)
def test_what_is_not_recognised_is_told(lines: list[bytes], words: str) -> None:
    with pytest.raises(TraceError, match=words):
        recognise("x", lines)
