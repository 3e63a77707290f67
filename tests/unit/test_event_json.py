"""Requests become the events that their models write, and what is written is read back."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import to_json

from litehit.numbered_texts import NumberedTexts
from litehit.request import Request, RequestBatch
from litehit.window_requests import WindowRequests
from schemas.request import EVENT, RequestEvent
from service.event_json import event_json, events_json
from tests.strategies import event_requests


def as_the_library_writes(request: Request) -> bytes:
    """The event, compact, its members in order."""
    block = request.trace_block_size_tokens
    return to_json(
        {
            "type": "request",
            "instance_id": request.instance_id,
            "trace_id": request.trace_id,
            "timestamp_ns": request.timestamp_ns,
            "block_keys": request.block_keys.tolist(),
            "input_token_len": request.input_token_len,
        }
        | ({} if block is None else {"trace_block_size_tokens": block})
    )


@given(st.lists(event_requests, max_size=8))
@example([])
@example([Request('\x00"\\\x7f\u2028', "\n\x1f\U0001d11e", -(2**63), np.arange(300), 2**63 - 1, 2**63 - 1)] * 2)
def test_events_are_as_the_library_writes_them(listed: list[Request]) -> None:
    events = events_json(WindowRequests.from_requests(range(len(listed)), listed))
    assert events == [as_the_library_writes(request) for request in listed]
    assert events == [event_json(request) for request in listed]


@given(name=st.text(max_size=5), numbers=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_numbered_ids_are_written_as_strings_are(name: str, numbers: list[int]) -> None:
    rows = np.arange(len(numbers))
    ids = NumberedTexts(name, np.array(numbers, np.int64))
    numbered, listed = (
        WindowRequests(
            rows,
            RequestBatch(traces, rows, rows, rows, np.arange(len(rows) + 1)),
            ("i",),
            np.zeros_like(rows),
            rows,
            np.zeros(len(rows), np.bool_),
        )
        for traces in (ids, list(ids))
    )
    assert (
        events_json(numbered)
        == events_json(listed)
        == [as_the_library_writes(request) for _, request in listed.requests()]
    )


def test_an_event_is_read_back() -> None:
    keys = np.array([0, -1, 2**63 - 1, -(2**63), 2**53 + 1], np.int64)
    request = Request("chat", 'turn "1" é', 1_750_000_000_123_456_789, keys, 12_345)
    event = EVENT.validate_json(event_json(request))
    assert isinstance(event, RequestEvent)
    assert event.block_keys.tolist() == keys.tolist()
    assert event.model_dump(exclude={"block_keys"}) == {
        "type": "request",
        "instance_id": "chat",
        "trace_id": 'turn "1" é',
        "timestamp_ns": 1_750_000_000_123_456_789,
        "input_token_len": 12_345,
        "trace_block_size_tokens": None,
    }
