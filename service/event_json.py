"""A request as the JSON that the requests topic and the format `native` carry."""

from __future__ import annotations

from pydantic_core import to_json

from litehit.request import Request
from service.integers_json import integers_json


def event_json(request: Request) -> bytes:
    """The request event of a request, compact; the request is trusted, not validated again."""
    stated = request.trace_block_size_tokens
    before = {
        "type": "request",
        "instance_id": request.instance_id,
        "trace_id": request.trace_id,
        "timestamp_ns": request.timestamp_ns,
    }
    block = b"" if stated is None else b',"trace_block_size_tokens":%d' % stated
    keys = integers_json(request.block_keys)
    return b'%b,"block_keys":%b,"input_token_len":%d%b}' % (to_json(before)[:-1], keys, request.input_token_len, block)
