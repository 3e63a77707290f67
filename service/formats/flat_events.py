"""The fast path for many request events at once: flat ones only, and never another answer than the record's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litehit.window import Window, windows_of
from litehit.window_requests import WindowRequests
from service.formats.contents import Contexts
from service.formats.event_columns import EventColumns
from service.formats.flat_lines import read_flat

_INTEGERS = ("timestamp_ns", "input_token_len", "trace_block_size_tokens", "input_len")
_STRINGS = ("type", "instance_id", "trace_id")
_KEYS = "block_keys"
_KINDS = frozenset({b"request", b"get"})
_WINDOW_BYTES = 2**19  # with its keys it stays in a processor's cache


def read_flat_events(records: Sequence[bytes], contexts: Contexts) -> WindowRequests:
    """The requests among R records that are flat, numbered by their places; the others are for the format's `parse`.

    The members that a template of instance ids looks at are not read.
    """
    # A line feed may stand between the tokens of a record, which is no line then.
    lines = ((place, record if b"\n" not in record else b"") for place, record in enumerate(records))
    return WindowRequests.concatenate(
        [
            _read_window(window).requests(contexts, first=window.numbers[0])
            for window in windows_of(lines, _WINDOW_BYTES)
        ]
    )


def _read_window(window: Window) -> EventColumns:
    text = window.text
    flat = read_flat(window, _INTEGERS, _KEYS, _STRINGS)
    times_ns, lengths, blocks, _ = flat.values.T
    has_time, _, has_block, has_other_length, has_kind, has_instance, _, has_keys = flat.given.T
    instance, instance_end = flat.bounds[:, 2], flat.bounds[:, 3]
    is_plain = (
        (flat.is_flat & has_kind & has_keys & ~has_other_length)
        & ~(has_instance & (instance == instance_end))
        & ~(has_block & (blocks < 1))
    )
    rows = np.flatnonzero(is_plain)
    is_plain[rows] = [text[begin:end] in _KINDS for begin, end in flat.bounds[rows, :2].tolist()]
    return EventColumns(
        text,
        is_plain,
        flat.bounds[:, 2:],
        times_ns,
        has_time,
        lengths,
        blocks,
        flat.keys,
        flat.key_firsts,
        flat.key_counts,
    )
