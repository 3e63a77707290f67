"""The format `dynamo`: Dynamo's request trace, `dynamo.request.trace.v1`, bare or as its file sinks wrap it."""

from __future__ import annotations

from litehit.request import Request
from litehit.time_units import NS_PER_MS
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext, shown, time_of
from service.formats.fast_object import Member, Wanted
from service.formats.fields import integer, json_object, key_list, text, time_ns
from service.formats.naming import STATED, Naming
from service.formats.object_format import ObjectFormat
from service.formats.prefix_blocks import full_block_keys

_REQUEST_END = "request_end"
_EVENT: Wanted = {
    "event_type": Member.VALUE,
    "request": {
        "request_id": Member.VALUE,
        "model": Member.VALUE,
        "request_received_ms": Member.VALUE,
        "replay": {
            "trace_block_size": Member.VALUE,
            "input_length": Member.VALUE,
            "input_sequence_hashes": Member.KEYS,
        },
    },
}


class DynamoFormat(ObjectFormat):
    """Prefix keys of all blocks, the partial last one included: that one is dropped.

    A record is written when its request ends, and its time is when it was received: a file is put in that order. Events
    other than a request's end are ignored. The model is the instance where nothing else names one.
    """

    name = "dynamo"
    wanted = _EVENT
    reorder_seconds = 600.0

    def __init__(self, naming: Naming = STATED) -> None:
        super().__init__(naming)
        self._members = {**self._members, "event": self._members}

    def parse(self, record: bytes, context: RecordContext) -> Request | None:
        """See `TraceFormat.parse`."""
        fields = self._read(record)
        event = json_object(fields, "event") if "event_type" not in fields and "event" in fields else fields
        kind = event.get("event_type")
        if type(kind) is not str:
            raise FormatError(Reason.UNKNOWN_TYPE, f"event_type = {shown(kind)} is refused; send {_REQUEST_END!r}")
        if kind != _REQUEST_END:
            return None
        request = json_object(event, "request")
        replay = json_object(request, "replay")
        input_length = integer(replay, "input_length", minimum=0)
        block = integer(replay, "trace_block_size", minimum=1)
        hashes = key_list(replay, "input_sequence_hashes")
        stated = text(request, "model") if context.instance_id is None else None
        received_ns = time_ns(request, "request_received_ms", NS_PER_MS)
        return Request(
            instance_id=self._naming.instance_of(stated, event, context),
            trace_id=text(request, "request_id") or f"{self.name}-{context.position}",
            timestamp_ns=time_of(received_ns, context, "request_received_ms"),
            block_keys=full_block_keys(hashes, input_length, block, "input_sequence_hashes", "trace_block_size"),
            input_token_len=input_length,
            trace_block_size_tokens=block,
        )
