"""The format `native`: the request event of the requests topic, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from litehit.curves import Int64Array
from litehit.request import Request
from schemas.block_keys import BlockKeyError, block_keys_array
from schemas.dead_letter import Reason
from schemas.registration import RegisterEvent
from schemas.request import ALIASES, EVENT, RequestEvent, WriteEvent
from service.formats.base import (
    Content,
    FormatError,
    RecordContext,
    invalid_field,
    refuse_no_text,
    shown,
    time_of,
)
from service.formats.contents import Contents, Contexts
from service.formats.fast_event import EVENT_MEMBERS, EventFields, Write, read_fast_event
from service.formats.fields import read_object
from service.formats.flat_events import read_flat_events
from service.formats.naming import STATED, Naming
from service.formats.registering import registration_of
from service.formats.trace_format import TraceFormat

_REASONS = {
    "json_invalid": Reason.MALFORMED_JSON,
    "union_tag_invalid": Reason.UNKNOWN_TYPE,
    "block_key_range": Reason.KEY_OUT_OF_RANGE,
    "block_key_type": Reason.KEY_TYPE,
    "block_keys_type": Reason.KEY_TYPE,
}
_TYPES = 'send "request" (or "get"), "write" for a write, or "register"'


class TypeAbsent(FormatError):
    """A record says not what it is."""

    def __init__(self) -> None:
        super().__init__(Reason.UNKNOWN_TYPE, f"type is absent; {_TYPES}")


class NativeFormat(TraceFormat):
    """One request event a record; a tair standard trace line is one too."""

    name = "native"

    def __init__(self, naming: Naming = STATED) -> None:
        self._naming = naming
        self._wanted = naming.join(EVENT_MEMBERS)

    def parse(self, record: bytes, context: RecordContext) -> Content:
        """See `TraceFormat.parse`."""
        event = read_fast_event(record, self._wanted) or self._read_by_model(record)
        if isinstance(event, Write | WriteEvent):
            return None
        if isinstance(event, RegisterEvent):
            return registration_of(event, context)
        return self._request(event, context)

    def parse_many(self, records: Sequence[bytes], contexts: Contexts) -> Contents:
        """See `TraceFormat.parse_many`."""
        if self._naming.by_template:
            return super().parse_many(records, contexts)
        return Contents.complete(read_flat_events(records, contexts), self.parse, records, contexts)

    def _request(self, event: EventFields, context: RecordContext) -> Request:
        return Request(
            instance_id=self._naming.instance_of(event.instance_id, event.members, context),
            trace_id=event.trace_id,
            timestamp_ns=time_of(event.timestamp_ns, context, "timestamp_ns"),
            block_keys=event.block_keys,
            input_token_len=event.input_token_len,
            trace_block_size_tokens=event.trace_block_size_tokens,
        )

    def _read_by_model(self, record: bytes) -> EventFields | WriteEvent | RegisterEvent:
        refuse_no_text(record)
        try:
            event = EVENT.validate_json(record)
        except ValidationError as error:
            raise _format_error(error.errors(include_url=False)[0]) from None
        if isinstance(event, WriteEvent | RegisterEvent):
            return event
        _refuse_contradictions(event, from_json(record))
        return EventFields(
            event.instance_id,
            event.trace_id,
            event.timestamp_ns,
            event.block_keys,
            event.input_token_len,
            event.trace_block_size_tokens,
            read_object(record) if self._naming.by_template else {},
        )


def _refuse_contradictions(event: RequestEvent, stated: dict[str, Any]) -> None:
    """Refuse a field that stands under both of its names, with a value each."""
    for alias, field in ALIASES:
        if alias not in stated or field not in stated:
            continue
        value, other = stated[field], stated[alias]
        if isinstance(other, list) and field == "block_keys":
            differ = not _are_keys(other, event.block_keys)
        else:
            differ = type(other) is int and other != value
        if differ:
            raise FormatError(
                Reason.INVALID_FIELD,
                f"{field} = {shown(value)} and {alias} = {shown(other)} contradict each other; send one of the two",
            )


def _are_keys(values: list[Any], keys: Int64Array) -> bool:
    try:
        return np.array_equal(block_keys_array(values), keys)
    except BlockKeyError:
        return False


def _format_error(details: ErrorDetails) -> FormatError:
    if details["type"] == "union_tag_not_found":
        return TypeAbsent()
    return FormatError(_REASONS.get(details["type"], Reason.INVALID_FIELD), _sentence(details))


def _sentence(details: ErrorDetails) -> str:
    kind, message, value = details["type"], details["msg"], details["input"]
    # The first part of a location is the event's type.
    field = ".".join(str(part) for part in details["loc"][1:])
    if kind == "json_invalid":
        return f"the record is not valid JSON ({details['ctx']['error']}); send one JSON object"
    if kind == "union_tag_invalid":
        return f"type = {details['ctx']['tag']!r} is unknown; {_TYPES}"
    if not field:
        return f"the record is {shown(value)}; send one JSON object"
    if kind == "missing":
        return f"{field} is absent; send the key of each full block, [] where no block is full"
    if kind.startswith("block_key"):
        return field + message.removeprefix("block_keys")  # its alias, where the record has that
    return invalid_field(details["loc"][1:], details)
