"""Which instances exist and how each is analysed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceConfig:
    """How one instance is analysed.

    Attributes:
        instance_id: the instance (never a glob).
        group: name of its group.
        block_size_tokens: tokens of one analysis block.
        trace_block_size_tokens: tokens of one block as the producer hashed it.
        block_bytes: bytes of one analysis block.
        enable_prefix_hash: the producer's keys are independent per-block hashes and must be chained.
        ttl_ns: time to live of a block in nanoseconds; 0 = off.
        capacity_gb: the configured slots, in binary GB.
    """

    instance_id: str
    group: str
    block_size_tokens: int
    trace_block_size_tokens: int
    block_bytes: int
    enable_prefix_hash: bool
    ttl_ns: int
    capacity_gb: tuple[float, ...]
