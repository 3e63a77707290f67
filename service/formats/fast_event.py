"""The fast path for request events: plain records only, and never another answer than `schemas.request.EVENT`.

Keys go from the text to an array without becoming Python integers. A record that is unusual in any way, or wrong, is
left to the model: nothing here decides what is valid.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import simdjson

from litehit.curves import Int64Array


class EventFields(NamedTuple):
    """The fields of a `RequestEvent`."""

    instance_id: str | None
    trace_id: str
    timestamp_ns: int | None
    block_keys: Int64Array
    input_token_len: int


class Write:
    """The fast path's answer to a write event."""


WRITE = Write()


class _ThreadParser(threading.local):
    def __init__(self) -> None:
        self.parser = simdjson.Parser()


_thread = _ThreadParser()


def read_fast(record: bytes) -> EventFields | Write | None:
    """The event in a record; None where the record is for the model to judge."""
    # simdjson takes a byte order mark and deeper nesting than the model does, and looks a name up as a C string, which
    # an escaped NUL would cut.
    if record[:1] != b"{" or b"\\" in record or record.find(b"{", 1) >= 0:
        return None
    try:
        # A parser cannot be used again while objects of its last document live: they all end with this call.
        return _read(_thread.parser.parse(record), record)
    except (ValueError, TypeError, RuntimeError):
        return None


def _read(document: Any, record: bytes) -> EventFields | Write | None:
    names = list(document)
    # Of a name given twice simdjson finds the first, the model the last.
    fields = frozenset(names)
    if len(fields) != len(names) or "type" not in fields:
        return None
    kind = document["type"]
    if kind == "write":
        return WRITE if _only_flat_arrays(document, names, record) else None
    if kind not in {"request", "get"}:
        return None
    key_field = "block_keys" if "block_keys" in fields else "keys"
    length_field = "input_token_len" if "input_token_len" in fields else "input_len"
    keys = document[key_field] if key_field in fields else None
    if not isinstance(keys, simdjson.Array) or not _only_flat_arrays(document, names, record):
        return None
    instance_id = document["instance_id"] if "instance_id" in fields else None
    trace_id = document["trace_id"] if "trace_id" in fields else ""
    timestamp_ns = document["timestamp_ns"] if "timestamp_ns" in fields else None
    input_token_len = document[length_field] if length_field in fields else 0
    if (
        (instance_id is None or (type(instance_id) is str and instance_id))
        and type(trace_id) is str
        and (timestamp_ns is None or _is_int64(timestamp_ns))
        and _is_int64(input_token_len)
    ):
        return EventFields(instance_id, trace_id, timestamp_ns, _key_array(keys), input_token_len)
    return None


def _only_flat_arrays(document: Any, names: Sequence[str], record: bytes) -> bool:
    # as_buffer flattens nested arrays in silence. Every array opens one bracket (a bracket inside a string only makes
    # the count too high), so with as many brackets as top-level arrays none is nested.
    first = record.find(b"[")
    if first < 0 or record.find(b"[", first + 1) < 0:  # one at most; find is far faster than count
        return True
    return record.count(b"[") == sum(isinstance(document[name], simdjson.Array) for name in names)


def _is_int64(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _key_array(keys: Any) -> Int64Array:
    try:
        buffer = keys.as_buffer(of_type="i")
    except ValueError:  # a key of 2**63 or more; one below 0 beside it raises again
        buffer = keys.as_buffer(of_type="u")
    return np.frombuffer(buffer, np.int64)
