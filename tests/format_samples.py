"""How to write a request as a record of each format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from litehit.curves import Int64Array
from litehit.preprocess import chain_keys
from service.format_names import FormatName

Record: TypeAlias = dict[str, Any]
PARTIAL_KEY = 12345


@dataclass(frozen=True)
class Plain:
    """A request to be written.

    Attributes:
        keys: of full blocks.
        tail: tokens after them.
        time_ms: milliseconds.
        block: tokens of a block.
        partial: key of the tail, where the format has one.
    """

    keys: Sequence[Any]
    tail: int
    time_ms: int
    block: int
    partial: Any = PARTIAL_KEY

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return len(self.keys) * self.block + self.tail

    @property
    def all_keys(self) -> list[Any]:
        """Those of full blocks and of a partial last one."""
        return [*self.keys, self.partial] if self.tail else list(self.keys)


def native(request: Plain) -> Record:
    return {
        "type": "request",
        "trace_id": "t",
        "timestamp_ns": request.time_ms * 1_000_000,
        "block_keys": list(request.keys),
        "input_token_len": request.length,
    }


def tair(request: Plain) -> Record:
    return {
        "type": "get",
        "trace_id": "t",
        "timestamp_ns": request.time_ms * 1_000_000,
        "keys": list(request.keys),
        "input_len": request.length,
        "query_type": "prefix_match",
        "block_mask": [True] * len(request.keys),
        "sw_size": 0,
        "location_spec_names": ["tp0"],
        "ttl_us": 0,
    }


def tair_publisher(request: Plain) -> Record:
    return {
        "type": "GetCacheLocation",
        "trigger_time_us": request.time_ms * 1000,
        "keys": list(request.keys),
        "block_mask": 3,
        "tokens": [],
    }


def mooncake(request: Plain) -> Record:
    return {
        "timestamp": request.time_ms,
        "input_length": request.length,
        "output_length": 1,
        "hash_ids": request.all_keys,
        **({} if request.block == 512 else {"block_size": request.block}),
    }


def bailian(request: Plain) -> Record:
    return {
        "chat_id": 5,
        "parent_chat_id": -1,
        "timestamp": _seconds(request.time_ms),
        "input_length": request.length,
        "output_length": 1,
        "type": "text",
        "turn": 1,
        "hash_ids": request.all_keys,
    }


def weka(request: Plain) -> Record:
    return {
        "id": "session",
        "block_size": request.block,
        "hash_id_scope": "global",
        "requests": [
            {
                "t": _seconds(request.time_ms),
                "type": "n",
                "in": request.length,
                "out": 1,
                "hash_ids": list(request.keys),
            }
        ],
    }


def dynamo(request: Plain) -> Record:
    return {
        "schema": "dynamo.request.trace.v1",
        "event_type": "request_end",
        "event_time_unix_ms": request.time_ms + 10,
        "request": {
            "request_id": "r",
            "model": "m",
            "request_received_ms": request.time_ms,
            "ttft_ms": 1.5,
            "replay": {
                "trace_block_size": request.block,
                "input_length": request.length,
                "input_sequence_hashes": request.all_keys,
            },
        },
    }


def litellm(request: Plain) -> Record:
    return {
        "id": "r",
        "startTime": _seconds(request.time_ms),
        "prompt_tokens": request.length,
        "prefix_block_hashes": request.all_keys,
    }


def sglang(request: Plain) -> Record:
    return {
        "id": "r",
        "timestamp": _seconds(request.time_ms),
        "block_size": request.block,
        "hash_ids": request.all_keys,
        "input_length": request.length,
        "output_length": 1,
    }


def _seconds(time_ms: int) -> float:
    return time_ms / 1000


@dataclass(frozen=True)
class Sample:
    """One format.

    Attributes:
        record: writes a request.
        time, keys: where those fields are in it.
        block: tokens of a block, where the format has only one, or one that is usual.
        any_block: records may have another.
        chained: its keys are chained when they are read.
        states_length: its records have the prompt's length.
    """

    record: Callable[[Plain], Record]
    time: tuple[Any, ...]
    keys: tuple[Any, ...]
    block: int = 16
    any_block: bool = True
    chained: bool = False
    states_length: bool = True

    def read_as(self, keys: Sequence[int]) -> list[int]:
        """The keys that these ones are read as."""
        as_int64: Int64Array = np.array([key - 2**64 if key >= 2**63 else key for key in keys], np.int64)
        read: list[int] = (chain_keys(as_int64) if self.chained else as_int64).tolist()
        return read


SAMPLES = {
    FormatName.NATIVE: Sample(native, ("timestamp_ns",), ("block_keys",)),
    FormatName.TAIR: Sample(tair, ("timestamp_ns",), ("keys",)),
    FormatName.TAIR_PUBLISHER: Sample(tair_publisher, ("trigger_time_us",), ("keys",), states_length=False),
    FormatName.MOONCAKE: Sample(mooncake, ("timestamp",), ("hash_ids",), block=512),
    FormatName.BAILIAN: Sample(bailian, ("timestamp",), ("hash_ids",), any_block=False, chained=True),
    FormatName.WEKA: Sample(weka, ("requests", 0, "t"), ("requests", 0, "hash_ids"), block=64),
    FormatName.DYNAMO: Sample(
        dynamo, ("request", "request_received_ms"), ("request", "replay", "input_sequence_hashes")
    ),
    FormatName.LITELLM: Sample(litellm, ("startTime",), ("prefix_block_hashes",)),
    FormatName.SGLANG: Sample(sglang, ("timestamp",), ("hash_ids",)),
}
"""Every format by its name."""


def put(record: Record, path: tuple[Any, ...], value: Any) -> Record:
    """Change a field in place."""
    holder: Any = record
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return record


def drop(record: Record, path: tuple[Any, ...]) -> Record:
    """Remove a field in place."""
    holder: Any = record
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return record
