"""Writing requests as events, many at once: what their encodings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from litehit.curves import Int64Array
from litehit.scratch import Scratch
from litehit.text_kernels import Bytes, parts_of
from litehit.window_requests import NOT_STATED, WindowRequests
from litehit.written_texts import written_texts

_scratch = Scratch(np.uint8)  # for the events' text


def write_together(
    requests: WindowRequests,
    written: Callable[[Sequence[str]], Sequence[str]],
    most_bytes: Callable[[int, int, int], int],
    write: Callable[..., None],
    keys: Int64Array | Bytes,
) -> list[bytes]:
    """The event of each request.

    Args:
        requests: R requests.
        written: gives ids as they are to be written: see `written_texts`.
        most_bytes: bytes that events may take, given those of their ids, how many events there are, and how many keys.
        write: writes them into an array and where each ends into another, given, after these, their columns.
        keys: all keys, as `write` takes them.
    """
    columns = requests.columns
    instances, traces = written_texts(requests.instances, written), written_texts(columns.trace_ids, written)
    ids = len(traces.text) + int(np.diff(instances.bounds)[requests.instance_of].sum())
    out = _scratch.room(most_bytes(ids, len(requests), len(columns.keys)))
    ends = np.empty(len(requests), np.int64)
    write(
        out,
        ends,
        *instances,
        requests.instance_of,
        *traces,
        columns.timestamps_ns,
        keys,
        columns.offsets,
        columns.input_token_lens,
        requests.stated_blocks,
        NOT_STATED,
    )
    return parts_of(out, ends)
