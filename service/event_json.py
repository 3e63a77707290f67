"""Requests as the JSON that the requests topic and the format `native` carry."""

from __future__ import annotations

from typing import Any

from litehit.curves import Int64Array
from litehit.request import Request
from litehit.text_kernels import Bytes, texts_of
from litehit.window_requests import WindowRequests
from litehit.written_texts import json_strings
from service.event_json_kernel import most_bytes, write_events
from service.event_writing import write_together

_GLUE = texts_of(
    (
        '{"type":"request","instance_id":"',
        '","trace_id":"',
        '","timestamp_ns":',
        ',"block_keys":[',
        '],"input_token_len":',
        ',"trace_block_size_tokens":',
        "}",
    )
)


def events_json(requests: WindowRequests) -> list[bytes]:
    """The request event of each request, compact; the requests are trusted, not validated again."""
    return write_together(requests, json_strings, _most_bytes, _write, requests.columns.keys)


def event_json(request: Request) -> bytes:
    """The request event of one request: see `events_json`."""
    return events_json(WindowRequests.from_requests((0,), (request,)))[0]


def _most_bytes(ids: int, events: int, keys: int) -> int:
    return most_bytes(ids, len(_GLUE.text), events, keys)


def _write(out: Bytes, ends: Int64Array, *columns: Any) -> None:
    write_events(out, ends, *_GLUE, *columns)
