"""Requests become the messages that the protobuf library writes."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from litehit.request import Request
from litehit.window_requests import WindowRequests
from service.event_protobuf import protobuf_event, protobuf_events
from service.formats.native_protobuf import EVENT_MESSAGE
from tests.strategies import event_requests


def as_the_library_writes(request: Request) -> bytes:
    message: bytes = EVENT_MESSAGE(
        instance_id=request.instance_id,
        trace_id=request.trace_id,
        timestamp_ns=request.timestamp_ns,
        block_keys=request.block_keys.tolist(),
        input_token_len=request.input_token_len,
        trace_block_size_tokens=request.trace_block_size_tokens,
    ).SerializeToString()
    return message


@given(st.lists(event_requests, max_size=8))
@example([])
@example([Request("i" * 200, "\x00\U0001d11e", -1, np.arange(300), -(2**63), 2**63 - 1)] * 2)
@example([Request("i", "", 0, np.arange(0), 0, None)])
def test_messages_are_as_the_library_writes_them(listed: list[Request]) -> None:
    events = protobuf_events(WindowRequests.from_requests(range(len(listed)), listed))
    assert events == [as_the_library_writes(request) for request in listed]
    assert events == [protobuf_event(request) for request in listed]
