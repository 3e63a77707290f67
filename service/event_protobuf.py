"""Requests as the messages of the format `native-protobuf`, see schemas/request_event.proto."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litehit.request import Request
from litehit.scratch import Scratch
from litehit.text_kernels import parts_of
from litehit.window_requests import NOT_STATED, WindowRequests
from litehit.written_texts import written_texts
from service.event_protobuf_kernel import most_bytes, write_events

_scratch = Scratch(np.uint8)  # for the messages


def protobuf_events(requests: WindowRequests) -> list[bytes]:
    """The request event of each request in binary; the requests are trusted, not validated again."""
    columns = requests.columns
    instances, traces = written_texts(requests.instances, _as_they_are), written_texts(columns.trace_ids, _as_they_are)
    ids = len(traces.text) + int(np.diff(instances.bounds)[requests.instance_of].sum())
    out = _scratch.room(most_bytes(ids, len(requests), len(columns.keys)))
    ends = np.empty(len(requests), np.int64)
    write_events(
        out,
        ends,
        *instances,
        requests.instance_of,
        *traces,
        columns.timestamps_ns,
        np.ascontiguousarray(columns.keys, "<i8").view(np.uint8),
        columns.offsets,
        columns.input_token_lens,
        requests.stated_blocks,
        NOT_STATED,
    )
    return parts_of(out, ends)


def protobuf_event(request: Request) -> bytes:
    """The request event of one request in binary: see `protobuf_events`."""
    return protobuf_events(WindowRequests.from_requests((0,), (request,)))[0]


def _as_they_are(texts: Sequence[str]) -> Sequence[str]:
    return texts
