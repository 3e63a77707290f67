"""A trace becomes request events with the right keys; what can't be read is sent as it is; the pace is the trace's."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from litehit.errors import OptionError, TraceError
from litehit.window import Window, windows_of
from service import formats
from service.errors import PublishError
from service.format_names import FormatName
from service.formats.base import FormatError, RecordContext
from service.outgoing import Headers, OutgoingRecord
from service.publish_trace import Published, publish_trace
from service.trace_source import open_trace


class FakePublisher:
    """Keeps what it is sent; waiting takes no time."""

    def __init__(self) -> None:
        self.sent: list[tuple[str | None, bytes]] = []
        self.headers: list[Headers] = []
        self.waits: list[float] = []
        self.sent_before: list[int] = []  # each wait

    def send(self, records: Iterable[OutgoingRecord]) -> None:
        for key, value, headers in records:
            self.sent.append((key, value))
            self.headers.append(headers)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.sent_before.append(len(self.sent))

    def finish(self) -> int:
        return len(self.sent)


def mooncake(time_ms: int, length: int, keys: list[int]) -> bytes:
    return json.dumps({"timestamp": time_ms, "input_length": length, "output_length": 1, "hash_ids": keys}).encode()


def publish(lines: list[bytes], name: str, **options: Any) -> tuple[FakePublisher, Published]:
    publisher = FakePublisher()
    return publisher, publish_trace(
        windows_of(enumerate(lines, 1)), publisher, formats.get(name), source="trace.jsonl", **options
    )


def test_a_foreign_format_becomes_request_events() -> None:
    publisher, published = publish([mooncake(3, 1000, [1, 2])], "mooncake", instance_id="chat")
    assert published == Published(1, 0, None, 3_000_000)
    ((key, value),) = publisher.sent
    assert key == "chat"
    event = json.loads(value)
    assert event == {
        "type": "request",
        "instance_id": "chat",
        "trace_id": "mooncake-1",
        "timestamp_ns": 3_000_000,
        "block_keys": [1],
        "input_token_len": 1000,
        "trace_block_size_tokens": 512,
    }


def test_a_record_goes_to_the_instance_it_names_before_the_default() -> None:
    own = b'{"type": "request", "instance_id": "own", "timestamp_ns": 1, "block_keys": []}'
    other = b'{"type": "request", "timestamp_ns": 1, "block_keys": []}'
    publisher, _ = publish([own, other], "native", instance_id="default")
    assert [key for key, _ in publisher.sent] == ["own", "default"]


def test_a_write_event_is_sent_as_it_is() -> None:
    line = b'{"type": "write", "anything": 1}'
    publisher, published = publish([line], "tair", instance_id="chat")
    assert publisher.sent == [("chat", line)]
    assert publisher.headers == [{"litehit-format": "tair"}]
    assert published == Published(1, 0, None, None)


def test_raw_records_carry_their_format() -> None:
    line = mooncake(3, 1000, [1, 2])
    publisher, published = publish([line], "mooncake", instance_id="chat", raw=True)
    assert publisher.sent == [("chat", line)]
    assert publisher.headers == [{"litehit-format": "mooncake"}]
    assert published == Published(1, 0, None, 3_000_000)


def test_binary_events_hold_the_same_requests() -> None:
    line = mooncake(3, 1000, [1, 2])
    json, _ = publish([line], "mooncake", instance_id="chat")
    binary, published = publish([line], "mooncake", instance_id="chat", binary=True)
    assert published == Published(1, 0, None, 3_000_000)
    assert binary.headers == [{"litehit-format": "native-protobuf"}]
    context = RecordContext(None, 0, None)
    ((key, message),), ((_, text),) = binary.sent, json.sent
    assert key == "chat"
    assert str(formats.get("native-protobuf").parse(message, context)) == str(
        formats.get("native").parse(text, context)
    )
    as_topic, _ = publish([line], "mooncake", instance_id="chat", binary=True, topic_format=FormatName.NATIVE_PROTOBUF)
    assert as_topic.headers == [{}]
    with pytest.raises(OptionError, match="raw and binary"):
        publish([line], "mooncake", instance_id="chat", raw=True, binary=True)


def test_no_header_where_the_topic_has_the_format() -> None:
    line = mooncake(3, 1000, [1, 2])
    raw, _ = publish([line], "mooncake", instance_id="chat", raw=True, topic_format=FormatName.MOONCAKE)
    assert raw.headers == [{}]
    native, _ = publish([line], "mooncake", instance_id="chat", topic_format=FormatName.MOONCAKE)
    assert native.headers == [{"litehit-format": "native"}]


def test_keys_that_the_registered_block_makes_clear_are_sent_as_they_are() -> None:
    line = b'{"startTime": 1, "prompt_tokens": 20, "prefix_block_hashes": ["00000000000000aa"]}'
    publisher, _ = publish([line], "litellm", instance_id="chat")
    assert publisher.sent == [("chat", line)]
    assert publisher.headers == [{"litehit-format": "litellm"}]


def test_a_line_that_is_not_of_the_format_is_sent_and_told() -> None:
    good = b'{"type": "request", "instance_id": "a", "timestamp_ns": 1, "block_keys": [1]}'
    bad = b'{"type": "request", "instance_id": "a", "timestamp_ns": 1, "block_keys": [1.5]}'
    publisher, published = publish([good, b"", bad, b"{"], "native")
    assert [value for _, value in publisher.sent[1:]] == [bad, b"{"]
    assert published.records == 3
    assert published.unreadable == 2
    assert published.first_problem is not None
    assert published.first_problem.startswith("line 3: block_keys[0]")


def test_a_wrong_format_sends_nothing() -> None:
    publisher = FakePublisher()
    with pytest.raises(TraceError, match=r"trace\.jsonl: line 1: .*is it of format native\?"):
        publish_trace(
            [Window(mooncake(0, 5, [1]) + b"\n", [1])], publisher, formats.get("native"), source="trace.jsonl"
        )
    assert publisher.sent == []


@pytest.mark.parametrize(("limit", "records"), [(0, 0), (2, 2), (9, 3), (None, 3)])
def test_a_limit(limit: int | None, records: int) -> None:
    lines = [mooncake(0, 5, [1])] * 3
    seen: list[int] = []
    publisher, published = publish(lines, "mooncake", instance_id="a", limit=limit, progress=seen.append)
    assert len(publisher.sent) == published.records == records
    assert seen == [records] * (records > 0)


def test_progress_is_told_after_some_records_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.publish_trace._TOGETHER", 2)
    seen: list[int] = []
    publish([mooncake(0, 5, [1])] * 5, "mooncake", instance_id="a", progress=seen.append)
    assert seen == [2, 4, 5]


@pytest.mark.parametrize("limit", [0, 1])
def test_beyond_a_limit_nothing_is_waited_for(limit: int) -> None:
    stopped = threading.Event()

    def tap() -> Iterator[Window]:
        yield Window(mooncake(0, 5, [1]) + b"\n", [1])
        assert stopped.wait(60)

    publisher = FakePublisher()
    publish_trace(
        tap(),
        publisher,
        formats.get("mooncake"),
        source="-",
        instance_id="a",
        limit=limit,
        stop=stopped.set,
    )
    assert len(publisher.sent) == limit


def test_the_pace_is_the_traces_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.publish_trace.time.monotonic", lambda: 100.0)
    lines = [mooncake(time_ms, 5, [1]) for time_ms in (0, 60_000, 120_000)]
    publisher, _ = publish(lines, "mooncake", instance_id="a", speed=10.0)
    assert publisher.waits == [0, 6, 12]
    assert publisher.sent_before == [0, 1, 2]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none(speed: float) -> None:
    with pytest.raises(OptionError, match="speed"):
        publish([], "mooncake", speed=speed)


@pytest.mark.parametrize("error", [TraceError("trace.jsonl", None, "is torn"), OSError("is torn")])
def test_a_trace_that_breaks_off_is_told_with_what_was_sent(error: Exception) -> None:
    def broken(count: int) -> Iterator[Window]:
        yield from windows_of(((number, mooncake(0, 5, [1])) for number in range(count)), 1)
        raise error

    publisher = FakePublisher()
    words = "is torn; the topic has the 3 records before that: mend the file, and publish it into a new store or only"
    with pytest.raises(PublishError, match=words):
        publish_trace(broken(3), publisher, formats.get("mooncake"), source="trace.jsonl", instance_id="a")
    assert len(publisher.sent) == 3
    with pytest.raises(type(error), match=r"is torn$"):
        publish_trace(broken(0), publisher, formats.get("mooncake"), source="trace.jsonl", instance_id="a")


@pytest.mark.parametrize("lines", [[], [b"", b" "]])
def test_a_trace_without_records_fails(lines: list[bytes]) -> None:
    with pytest.raises(TraceError, match=r"^trace\.jsonl: holds no record to publish; see that it is the right file$"):
        publish(lines, "native")
    assert publish(lines, "native", limit=0)[1] == Published(0, 0, None, None)


def test_a_first_line_without_an_instance_may_be_of_the_format() -> None:
    with pytest.raises(TraceError, match=r"^trace\.jsonl: line 1: the record names no instance_id .* or replayed$"):
        publish([mooncake(0, 5, [1])], "mooncake")


def test_of_sessions_what_can_be_read_goes_on(tmp_path: Path) -> None:
    """A bad request is told with the place that it has in its file, and is no other one on the topic."""
    requests = [{"t": time, "in": 64, "hash_ids": [f"{time:016x}"]} for time in range(4)]
    text = json.dumps({"id": "s", "hash_id_scope": "global", "model": "m", "requests": requests})
    text = text.replace('["0000000000000002"]', "[1000000000000e15]").replace('"t": 3, "in": 64', '"t": 3, "in": 6.4')
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(text.replace('"s"', '"r"').replace("e15", "0").replace("6.4", "64"))
    publisher = FakePublisher()
    with open_trace(str(tmp_path), "auto", go_on=True) as opened:
        published = publish_trace(
            opened.windows(), publisher, opened.trace_format, source=str(tmp_path), instance_id="a"
        )
    assert (published.records, published.unreadable) == (8, 2)
    why = f"{tmp_path}/a.json: line 1: requests[2]: hash_ids[0] = 1000000000000e15 is a float; send an integer"
    assert (published.first_problem or "").startswith(why)
    taken = [sent for sent, headers in zip(publisher.sent, publisher.headers, strict=True) if not headers]
    assert len(taken) == 6
    for headers, (_, record) in zip(publisher.headers, publisher.sent, strict=True):
        if headers:
            assert headers == {"litehit-format": "weka"}
            with pytest.raises(FormatError, match=r"requests\[0\]: (hash_ids\[0\] = 1000000000000e15|in = 6\.4) is"):
                formats.get("weka").parse(record, RecordContext("a", 0, None))
    with pytest.raises(TraceError, match=re.escape(why)), open_trace(str(tmp_path), "auto") as strict:
        list(strict.windows())
