"""Integers as a JSON list, without making Python's of them."""

from __future__ import annotations

import numpy as np

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.scratch import Scratch
from litehit.text_kernels import MOST_DIGITS, Bytes, put_integer

_OPEN, _COMMA, _CLOSE = b"[,]"

_scratch = Scratch(np.uint8)  # for a list's text


def integers_json(values: Int64Array) -> bytes:
    """A list of int64, compact."""
    out = _scratch.room(2 + len(values) * (MOST_DIGITS + 1))
    return out[: _write(out, values)].tobytes()


@kernel()
def _write(out: Bytes, values: Int64Array) -> Integer:
    out[0] = _OPEN
    at: Integer = 1
    for i in range(len(values)):
        at = put_integer(out, at, values[i])
        out[at] = _COMMA
        at += 1
    if len(values) > 0:
        at -= 1
    out[at] = _CLOSE
    return at + 1
