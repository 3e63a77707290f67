"""Requests as the JSON that the requests topic and the format `native` carry."""

from __future__ import annotations

import numpy as np

from litehit.request import Request
from litehit.scratch import Scratch
from litehit.text_kernels import parts_of, texts_of
from litehit.window_requests import NOT_STATED, WindowRequests
from litehit.written_texts import json_strings, written_texts
from service.event_json_kernel import most_bytes, write_events

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

_scratch = Scratch(np.uint8)  # for the events' text


def events_json(requests: WindowRequests) -> list[bytes]:
    """The request event of each request, compact; the requests are trusted, not validated again."""
    columns = requests.columns
    instances = written_texts(requests.instances, json_strings)
    traces = written_texts(columns.trace_ids, json_strings)
    ids = len(traces.text) + int(np.diff(instances.bounds)[requests.instance_of].sum())
    out = _scratch.room(most_bytes(ids, len(_GLUE.text), len(requests), len(columns.keys)))
    ends = np.empty(len(requests), np.int64)
    write_events(
        out,
        ends,
        *_GLUE,
        *instances,
        requests.instance_of,
        *traces,
        columns.timestamps_ns,
        columns.keys,
        columns.offsets,
        columns.input_token_lens,
        requests.stated_blocks,
        NOT_STATED,
    )
    return parts_of(out, ends)


def event_json(request: Request) -> bytes:
    """The request event of one request: see `events_json`."""
    return events_json(WindowRequests.from_requests((0,), (request,)))[0]
