"""A request as the JSON that the requests topic and the format `native` carry."""

from __future__ import annotations

from pydantic_core import to_json

from litehit.request import Request


def event_json(request: Request) -> bytes:
    """The request event of a request, compact; the request is trusted, not validated again."""
    # The model's serializer would call Python for the keys, and wraps a KeyboardInterrupt there in an error of its own.
    stated = request.trace_block_size_tokens
    return to_json(
        {
            "type": "request",
            "instance_id": request.instance_id,
            "trace_id": request.trace_id,
            "timestamp_ns": request.timestamp_ns,
            "block_keys": request.block_keys.tolist(),
            "input_token_len": request.input_token_len,
            **({} if stated is None else {"trace_block_size_tokens": stated}),
        }
    )
