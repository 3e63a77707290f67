"""A request as the JSON that the requests topic and the format `native` carry."""

from __future__ import annotations

from litehit.request import Request
from schemas.request import RequestEvent


def event_json(request: Request) -> bytes:
    """The request event of a request, compact; the request is trusted, not validated again."""
    event = RequestEvent.model_construct(
        type="request",
        instance_id=request.instance_id,
        trace_id=request.trace_id,
        timestamp_ns=request.timestamp_ns,
        block_keys=request.block_keys,
        input_token_len=request.input_token_len,
    )
    return event.model_dump_json().encode()
