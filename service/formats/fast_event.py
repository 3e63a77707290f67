"""The fast path for request events: plain records only, and never another answer than `schemas.request.EVENT`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from litehit.curves import Int64Array
from schemas.request import ALIASES
from service.formats.fast_object import Member, Wanted, read_fast

EVENT_MEMBERS: Wanted = {
    "type": Member.VALUE,
    "instance_id": Member.VALUE,
    "trace_id": Member.VALUE,
    "timestamp_ns": Member.VALUE,
    "block_keys": Member.KEYS,
    "keys": Member.KEYS,
    "input_token_len": Member.VALUE,
    "input_len": Member.VALUE,
    "trace_block_size_tokens": Member.VALUE,
}
_WANTED_OF_A_WRITE = {"type": Member.VALUE}


class EventFields(NamedTuple):
    """The fields of a `RequestEvent`, and what a template of instance ids looks at."""

    instance_id: str | None
    trace_id: str
    timestamp_ns: int | None
    block_keys: Int64Array
    input_token_len: int
    trace_block_size_tokens: int | None
    members: Mapping[str, Any]


class Write:
    """The fast path's answer to a write event."""


WRITE = Write()


def read_fast_event(record: bytes, wanted: Wanted = EVENT_MEMBERS) -> EventFields | Write | None:
    """The event in a record; None where the record is for the model to judge.

    Args:
        record: the bytes.
        wanted: the event's members, and others.
    """
    members = read_fast(record, wanted)
    if members is None:
        # Of a write nothing else is looked at, so nothing else in it is unusual.
        members = read_fast(record, _WANTED_OF_A_WRITE)
        return WRITE if members is not None and members.get("type") == "write" else None
    kind = members.get("type")
    if kind == "write":
        return WRITE
    keys = members["block_keys"] if "block_keys" in members else members.get("keys")
    if keys is None or kind not in {"request", "get"}:
        return None
    if any(alias in members and field in members for alias, field in ALIASES):  # they may contradict each other
        return None
    length_field = "input_token_len" if "input_token_len" in members else "input_len"
    event = EventFields(
        members.get("instance_id"),
        members.get("trace_id", ""),
        members.get("timestamp_ns"),
        keys,
        members.get(length_field, 0),
        members.get("trace_block_size_tokens"),
        members,
    )
    return event if _is_usual(event) else None


def _is_usual(event: EventFields) -> bool:
    instance_id, trace_id, timestamp_ns, _, input_token_len, block, _ = event
    return (
        (instance_id is None or (type(instance_id) is str and instance_id != ""))
        and type(trace_id) is str
        and (timestamp_ns is None or _is_int64(timestamp_ns))
        and _is_int64(input_token_len)
        and (block is None or (_is_int64(block) and block > 0))
    )


def _is_int64(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63
