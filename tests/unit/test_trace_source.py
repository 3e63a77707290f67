"""A trace opens as its format says: in its lines, in order of time, from a folder."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from litehit.errors import OptionError
from service.format_names import LINE_FORMATS
from service.trace_source import open_trace
from tests.format_samples import Plain, dynamo, mooncake, weka

SAMPLES = Path(__file__).parents[1] / "samples"


def dynamo_lines(*times: int) -> bytes:
    records = [dynamo(Plain([1], 0, time, 16)) for time in times]
    wrapped = [{"timestamp": 5, "event": record} if place % 2 else record for place, record in enumerate(records)]
    return "".join(json.dumps(record) + "\n" for record in wrapped).encode()


def numbers(path: Path, format_name: str, reorder: float | None = None) -> list[int]:
    with open_trace(str(path), format_name, reorder) as trace:
        return [number for window in trace.windows() for number in window.numbers]


def test_dynamo_is_put_in_order_of_receipt(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress(dynamo_lines(5000, 1000, 3000)))
    assert numbers(path, "auto") == numbers(path, "dynamo") == [2, 3, 1]
    assert numbers(path, "dynamo", 0) == [1, 2, 3]
    assert numbers(path, "dynamo", 1.5) == [2, 3, 1]


def test_what_a_tap_wrote_goes_on_before_it_writes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tap, writer = io.BytesIO(), dynamo_lines(1000, 3000, 2000, 9000).splitlines(keepends=True)
    written = iter([b"".join(writer[:3]), writer[3]])
    monkeypatch.setattr(tap, "read1", lambda _: next(written, b""))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=tap))
    with open_trace("-", "dynamo", 1.5) as trace:
        assert [list(window.numbers) for window in trace.windows()] == [[1], [3, 2], [4]]


def test_any_format_may_be_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    lines = [json.dumps(mooncake(Plain([1], 0, time, 512))) for time in (7, 3, 5)]
    path.write_text("\n".join([lines[0], "no record", *lines[1:]]))
    assert numbers(path, "mooncake") == [1, 2, 3, 4]
    assert numbers(path, "mooncake", 1) == [2, 3, 4, 1]


def test_sessions_are_recognised_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps(weka(Plain([1], 0, 5, 64))).encode() + b"\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with open_trace("-", "auto") as trace:
        assert trace.trace_format.name == "weka"
        assert trace.size is None
        assert [list(window.numbers) for window in trace.windows()] == [[1]]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_window_that_is_none(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(OptionError, match="is no number of seconds; give 0 or more"):
        numbers(tmp_path, "dynamo", seconds)


def test_a_folder_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="is a folder, and format mooncake lies in one file"):
        numbers(tmp_path, "mooncake")


def test_a_format_that_no_file_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="native-protobuf is of records on the topic, which no file holds; name one"):
        numbers(tmp_path / "trace", "native-protobuf")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"{}")
    with pytest.raises(OptionError, match="format 'csv' is unknown"):
        numbers(path, "csv")


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_a_file_of_its_format_is_not_warned_of(name: str) -> None:
    path = SAMPLES / name
    with open_trace(str(path if path.is_dir() else path.with_suffix(".jsonl")), name, warn=pytest.fail):
        pass


@pytest.mark.parametrize(
    ("name", "other"), [("sglang", "mooncake"), ("bailian", "mooncake"), ("tair", "mooncake"), ("litellm", "native")]
)
def test_a_file_of_another_format_is_warned_of(name: str, other: str) -> None:
    told: list[str] = []
    path = str(SAMPLES / f"{name}.jsonl")
    with open_trace(path, other, warn=told.append) as trace:
        assert trace.trace_format.name == other
        assert next(trace.windows()).numbers[0] == 1
    (warning,) = told
    assert warning.startswith(f"{path}: line 1 looks like {name} rather than {other}, and formats differ in ")


def test_where_the_first_line_says_nothing_nothing_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for content in (b"", b"no record\n", b"{}\n", b'{"type": "get", "keys": [], "input_len": 0}\n'):
        path.write_bytes(content)
        with open_trace(str(path), "native", warn=pytest.fail):
            pass
