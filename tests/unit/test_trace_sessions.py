"""Sessions of a folder become one trace in order of time; keys of two sessions stay apart, those of one stay equal."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from litehit.errors import TraceError
from litehit.request import Request
from service.formats.base import RecordContext
from service.trace_source import open_trace


def request(time: float, keys: list[int], **more: Any) -> dict[str, Any]:
    return {"t": time, "type": "n", "in": 64 * len(keys), "out": 1, "hash_ids": keys, **more}


def session(name: str, *requests: dict[str, Any], scope: str = "local") -> dict[str, Any]:
    return {"id": name, "block_size": 64, "hash_id_scope": scope, "requests": list(requests)}


def write(folder: Path, **sessions: dict[str, Any]) -> None:
    for name, content in sessions.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1 if name.startswith("b") else None))


def read(name: Path, format_name: str = "auto") -> list[Request]:
    requests = []
    with open_trace(str(name), format_name) as trace:
        for number, record in chain.from_iterable(window.records() for window in trace.windows()):
            one = trace.trace_format.parse(record, RecordContext("i", number, None))
            assert isinstance(one, Request)
            requests.append(one)
        assert trace.size is not None
        assert trace.position() == trace.size
    return requests


def test_a_folder_is_merged_by_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        a=session("one", request(0, [1]), request(2.5, [1, 2]), request(2.5, [1, 3])),
        b=session("two", request(0, [7]), request(1.25, [7, 8])),
    )
    requests = read(tmp_path)
    assert [one.trace_id for one in requests] == ["one-1", "two-2", "two-3", "one-4", "one-5"]
    assert [one.timestamp_ns for one in requests] == [0, 0, 1_250_000_000, 2_500_000_000, 2_500_000_000]
    assert [one.input_token_len for one in requests] == [64, 64, 128, 128, 128]


def test_local_keys_are_equal_inside_a_session_only(tmp_path: Path) -> None:
    write(tmp_path, a=session("one", request(0, [1, 2]), request(3, [1, 2, 3])), b=session("two", request(1, [1, 2])))
    first, other, again = (one.block_keys.tolist() for one in read(tmp_path))
    assert again[:2] == first
    assert not set(first) & set(other)
    assert len({*again, *other}) == 5


def test_global_keys_stay_as_they_are(tmp_path: Path) -> None:
    write(
        tmp_path, a=session("one", request(0, [1]), scope="global"), b=session("two", request(1, [1]), scope="global")
    )
    assert [one.block_keys.tolist() for one in read(tmp_path)] == [[1], [1]]


def test_sub_agents_are_in_their_session(tmp_path: Path) -> None:
    agent = {"t": 1, "type": "subagent", "requests": [request(1, [1, 5]), request(3, [1, 5, 6])]}
    write(tmp_path, a=session("one", request(0, [1]), agent, request(2, [1, 2])))
    requests = read(tmp_path / "a.json", "weka")
    assert [one.timestamp_ns // 10**9 for one in requests] == [0, 1, 2, 3]
    assert requests[1].block_keys[0] == requests[0].block_keys[0] == requests[2].block_keys[0]
    assert requests[3].block_keys[1] == requests[1].block_keys[1]


def test_a_file_may_hold_a_session_a_line(tmp_path: Path) -> None:
    trace = tmp_path / "sessions.jsonl"
    trace.write_text("".join(json.dumps(session(name, request(0, [1]))) + "\n\n" for name in ("one", "two")))
    assert [one.trace_id for one in read(trace)] == ["one-1", "two-2"]


def test_keys_and_times_pass_unchanged(tmp_path: Path) -> None:
    write(tmp_path, a=session("one", request(0.1234567891, [2**64 - 1, -1]), scope="global"))
    (one,) = read(tmp_path)
    assert one.block_keys.tolist() == [-1, -1]
    assert one.timestamp_ns == 123_456_789


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (session("one", {"type": "n", "in": 1, "hash_ids": []}), r"a\.json: line 1: requests\[0\]: t is absent"),
        (session("one", scope="else"), r"hash_id_scope = 'else' is refused; send 'local' or 'global'"),
        ({"id": "x", "hash_id_scope": "local"}, "requests = None is refused; send a list"),
        (
            session("one", {"type": "subagent", "t": 0, "requests": [5]}),
            r"requests\[0\]\.requests\[0\] = 5 is refused; send an object",
        ),
        (
            session("one", request(0, [1]), {**request(1, [1]), "hash_ids": [1.5]}),
            r"a\.json: line 1: requests\[1\]: hash_ids\[0\] = 1\.5 is a float; send an integer",
        ),
        (
            session("one", request(0, [1]), {"t": 1, "type": "subagent", "requests": [request(1, [1]) | {"in": 200}]}),
            r"requests\[1\]\.requests\[0\]: hash_ids has 1 key, but in = 200 has 3 full blocks of 64 tokens; send one",
        ),
        (session("one", request(0, [1]) | {"in": 64.0}), r"requests\[0\]: in = 64\.0 is refused; send an integer"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_place(tmp_path: Path, content: Any, words: str) -> None:
    write(tmp_path, a=content)
    with pytest.raises(TraceError, match=words):
        read(tmp_path)


def test_a_local_session_in_two_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a=session("one", request(0, [1])), c=session("one", request(0, [1])))
    with pytest.raises(TraceError, match=r"c\.json: line 1: session 'one' is in .*a\.json, line 1, too; keep one"):
        read(tmp_path)


def test_a_local_session_in_two_lines_is_refused(tmp_path: Path) -> None:
    """Its blocks would be taken for those of the other one."""
    trace = tmp_path / "sessions.jsonl"
    trace.write_text("".join(json.dumps(session(name, request(0, [1]))) + "\n" for name in ("one", "two", "one")))
    with pytest.raises(TraceError, match=r"line 3: session 'one' is in .*sessions\.jsonl, line 1, too; keep one"):
        read(trace)


def test_a_global_session_may_come_in_parts(tmp_path: Path) -> None:
    trace = tmp_path / "sessions.jsonl"
    parts = (session("one", request(time, [1]), scope="global") for time in (0, 1))
    trace.write_text("".join(json.dumps(part) + "\n" for part in parts))
    assert [one.block_keys.tolist() for one in read(trace)] == [[1], [1]]


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no session; put files there that end in \.json or \.jsonl"):
        read(tmp_path)
