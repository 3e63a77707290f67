"""The fast path for many binary request events at once: plain ones only, and never another answer than their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from service.formats import event_kernel as kernel
from service.formats.event_columns import EventColumns


def read_messages(records: Sequence[bytes]) -> EventColumns:
    """The plain events among R records.

    A plain event has no field twice, its keys in one piece, strings in ASCII and no registration. What a template of
    instance ids looks at is not read.
    """
    text = b"".join(records)
    count = len(records)
    is_plain = np.empty(count, np.bool_)
    values = np.zeros((count, kernel.NUMBERS, 2), np.int64)
    given = np.zeros((count, kernel.NUMBERS), np.bool_)
    keys = np.empty(len(text) // kernel.KEY_BYTES, np.int64)
    firsts = np.empty(count, np.int64)
    counts = np.empty(count, np.int64)
    kernel.read_events(
        np.frombuffer(text, np.uint8),
        np.fromiter(accumulate(map(len, records)), np.int64, count),
        is_plain,
        values,
        given,
        keys,
        firsts,
        counts,
    )
    return EventColumns(
        text,
        is_plain,
        values[:, [kernel.INSTANCE_ID, kernel.TRACE_ID]].reshape(count, 4),
        values[:, kernel.TIMESTAMP_NS, 0],
        given[:, kernel.TIMESTAMP_NS],
        values[:, kernel.INPUT_TOKEN_LEN, 0],
        values[:, kernel.TRACE_BLOCK, 0],
        keys,
        firsts,
        counts,
    )
