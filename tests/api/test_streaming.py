"""Long answers are sent in small parts and bounded memory, and end with the reader that does not read on."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from litehit.curves import FlatCurves
from litehit.facts import FactBatch
from service.api import answering
from service.archive.segment import ChainKey
from tests.api_archive import ApiArchive
from tests.api_doubles import Client

CHAIN = ChainKey("facts", "g", 0)


def facts(count: int, segments: int) -> FactBatch:
    """As many facts, each with a curve of so many segments."""
    starts = np.tile(np.arange(segments, dtype=np.int64) * 10 + 1, count)
    return FactBatch(
        [f"trace-{place}" for place in range(count)],
        ["chat"] * count,
        np.arange(count),
        np.full(count, 10**9),
        np.ones(count, np.int64),
        np.full(count, 2**20),
        FlatCurves(starts, np.full(count * segments, 3), np.arange(count + 1) * segments),
    )


class Sent:
    """What a call sends: how much, and in how large parts."""

    def __init__(self) -> None:
        self.status = 0
        self.parts = self.size = self.largest = 0
        self.last = b""

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        body = message.get("body", b"")
        self.parts += 1
        self.size += len(body)
        self.largest = max(self.largest, len(body))
        self.last = body or self.last


def call(app: Any, path: str, query: str, send: Callable[[Any], Any]) -> None:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [],
        "client": ("test", 1),
        "server": ("test", 80),
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(app(scope, receive, send))


def peak_of(work: Callable[[], None]) -> int:
    """Bytes that were allocated at most, beyond those before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_requests_are_streamed_in_memory_that_does_not_grow_with_them(tmp_path: Path) -> None:
    archive = ApiArchive(tmp_path)
    query = "&".join(f"capacity_gb={step / 10}" for step in range(10))
    peaks = []
    for segments in (2, 6):
        while len(archive.catalog.view.segments) < segments:
            archive.append_rows(CHAIN, facts(8_000, 1))
            archive.publish(CHAIN)
            archive.follow()
        call(archive.app, "/query/requests", query, Sent())  # what is made once is made here
        sent = Sent()
        peaks.append(peak_of(lambda sent=sent: call(archive.app, "/query/requests", query, sent)))  # type: ignore[misc]
        assert sent.status == 200
        assert sent.last.startswith(b'{"summary":"total","requests":%d,' % (8_000 * segments))
        assert sent.largest < 2**21
    assert peaks[1] < 1.3 * peaks[0]


def test_a_whole_curve_is_streamed(tmp_path: Path) -> None:
    archive = ApiArchive(tmp_path)
    archive.append_rows(CHAIN, facts(1, 30_000))
    call(archive.app, "/curve", "points=2", Sent())  # what is made once is made here
    sent = Sent()
    peak = peak_of(lambda: call(archive.app, "/curve", "", sent))
    assert sent.status == 200
    assert sent.size > 5 * 2**20
    assert sent.largest < 2**18
    assert peak < 60_000 * 8 * 8 < sent.size  # eight numbers for each point of a curve, and never the text


def test_a_curve_of_too_many_breakpoints_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = ApiArchive(tmp_path)
    archive.append_rows(CHAIN, facts(1, 60))
    client = Client(archive.app)
    monkeypatch.setattr("service.api.curve.MAX_BREAKPOINTS", 100)
    response = client.get("/curve")
    assert response.status_code == 422
    assert "the answer would have 240 points" in response.json()["detail"]
    assert client.get("/curve", [("points", 100)]).status_code == 200
    client.close()


def test_so_many_calls_read_facts_at_once_and_each_gives_its_turn_back(tmp_path: Path) -> None:
    archive = ApiArchive(tmp_path)
    archive.append_rows(CHAIN, facts(30_000, 1))
    client = Client(archive.app)
    refused: list[int] = []

    async def send(message: Any) -> None:
        # While this answer is being sent, others ask; each of them sends while the next asks.
        if message["type"] == "http.response.start" and len(started) < 8:
            started.append(message["status"])
            if len(started) < 8:
                await asyncio.to_thread(call, archive.app, "/query/requests", "capacity_gb=1", send)
            else:
                refused.append((await asyncio.to_thread(client.get, "/facts")).status_code)
                refused.append(
                    (await asyncio.to_thread(client.get, "/query/requests", [("capacity_gb", 1)])).status_code
                )

    started: list[int] = []
    call(archive.app, "/query/requests", "capacity_gb=1", send)
    assert started == [200] * 8
    assert refused == [429, 429]
    response = client.get("/facts")
    assert response.status_code == 200
    client.close()


def test_an_answer_that_is_not_taken_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = ApiArchive(tmp_path)
    archive.append_rows(CHAIN, facts(30_000, 1))
    monkeypatch.setattr(answering, "STALLED_SECONDS", 0.05)
    parts = 0

    async def send(message: Any) -> None:
        nonlocal parts
        parts += 1
        if parts == 3:
            await asyncio.Event().wait()  # a reader that has stopped reading

    for _ in range(9):  # more than may read at once
        parts = 0
        call(archive.app, "/query/requests", "capacity_gb=1", send)
        assert parts == 3


def test_an_answer_that_damage_cuts_off_is_told_in_a_line(tmp_path: Path) -> None:
    archive = ApiArchive(tmp_path)
    for _ in range(2):
        archive.append_rows(CHAIN, facts(8_000, 1))
        archive.publish(CHAIN)
    archive.follow()
    second = tmp_path / archive.catalog.view.segments[1].path
    content = bytearray(second.read_bytes())
    content[len(content) // 3] ^= 0xFF
    second.write_bytes(content)
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    with capture_logs() as logs:
        call(archive.app, "/query/requests", "capacity_gb=1", send)
    assert messages[0]["status"] == 200
    assert messages[-1]["more_body"]  # so that the server closes the connection and the reader sees it
    (told,) = logs
    assert (told["event"], told["path"]) == ("answer_cut_off", "/query/requests")
    assert "damaged" in told["error"]
    call(archive.app, "/query", "capacity_gb=1", Sent())  # the rest goes on
