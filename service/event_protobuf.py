"""Requests as the messages of the format `native-protobuf`, see schemas/request_event.proto."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litehit.request import Request
from litehit.window_requests import WindowRequests
from service.event_protobuf_kernel import most_bytes, write_events
from service.event_writing import write_together


def protobuf_events(requests: WindowRequests) -> list[bytes]:
    """The request event of each request in binary; the requests are trusted, not validated again."""
    keys = np.ascontiguousarray(requests.columns.keys, "<i8").view(np.uint8)
    return write_together(requests, _as_they_are, most_bytes, write_events, keys)


def protobuf_event(request: Request) -> bytes:
    """The request event of one request in binary: see `protobuf_events`."""
    return protobuf_events(WindowRequests.from_requests((0,), (request,)))[0]


def _as_they_are(texts: Sequence[str]) -> Sequence[str]:
    return texts
