"""From a producer's keys to prefix keys at the analysis granularity (SPEC section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.errors import CoarseningError, InvalidRequest, LengthMismatch
from litehit.jit import kernel
from schemas.block_keys import block_keys_array


@dataclass(frozen=True, slots=True)
class NormalizedRequest:
    """A request ready for the core.

    Attributes:
        block_keys: int64[m], the prefix key of each full analysis block.
        input_token_len: the denominator of its hit rate, in tokens.
    """

    block_keys: Int64Array
    input_token_len: int


@dataclass(frozen=True, slots=True)
class NormalizedBatch:
    """R requests ready for the core.

    Attributes:
        keys: int64[M], the prefix keys of all full analysis blocks.
        offsets: int64[R + 1]; request i has the keys `offsets[i]:offsets[i + 1]`.
        input_token_lens: int64[R], the denominators, in tokens.
    """

    keys: Int64Array
    offsets: Int64Array
    input_token_lens: Int64Array


def check_granularity(block_size_tokens: int, trace_block_size_tokens: int) -> int:
    """The coarsening factor k: how many trace blocks make one analysis block.

    Raises:
        CoarseningError: `block_size_tokens` is no positive multiple of a positive `trace_block_size_tokens`.
    """
    if trace_block_size_tokens <= 0 or block_size_tokens <= 0 or block_size_tokens % trace_block_size_tokens:
        raise CoarseningError(block_size_tokens, trace_block_size_tokens)
    return block_size_tokens // trace_block_size_tokens


def denominator(key_count: int, input_token_len: int, trace_block_size_tokens: int) -> int:
    """A request's denominator in tokens: its stated length, or, where that is <= 0, its keys' full blocks.

    Raises:
        LengthMismatch: the number of keys is not the number of full trace blocks in the stated length.
    """
    if input_token_len <= 0:
        return key_count * trace_block_size_tokens
    if key_count != input_token_len // trace_block_size_tokens:
        raise LengthMismatch(key_count, input_token_len, trace_block_size_tokens)
    return input_token_len


def normalize_request(
    block_keys: Sequence[int] | Int64Array | NDArray[np.uint64],
    input_token_len: int,
    block_size_tokens: int,
    enable_prefix_hash: bool = False,
    trace_block_size_tokens: int = 0,
) -> NormalizedRequest:
    """Check one request and bring its keys to prefix keys at the analysis granularity.

    Args:
        block_keys: one key for each full trace block, front to back; int64 or uint64 integers.
        input_token_len: prompt length in tokens, the denominator; <= 0 means absent.
        block_size_tokens: tokens of one analysis block.
        enable_prefix_hash: the keys are independent per-block hashes; chain them first.
        trace_block_size_tokens: tokens of one trace block; 0 means `block_size_tokens`.

    Raises:
        LengthMismatch: the number of keys is not `input_token_len // trace_block_size_tokens`.
        CoarseningError: `block_size_tokens` is no positive multiple of `trace_block_size_tokens`.
        BlockKeyError: a key is no 64-bit integer.
    """
    keys = block_keys_array(block_keys)
    batch = normalize_batch(
        keys,
        np.array([0, len(keys)], np.int64),
        np.array([input_token_len], np.int64),
        block_size_tokens,
        enable_prefix_hash,
        trace_block_size_tokens,
    )
    return NormalizedRequest(batch.keys, int(batch.input_token_lens[0]))


def normalize_batch(
    keys: Int64Array | NDArray[np.uint64],
    offsets: Int64Array,
    input_token_lens: Int64Array,
    block_size_tokens: int,
    enable_prefix_hash: bool = False,
    trace_block_size_tokens: int = 0,
) -> NormalizedBatch:
    """`normalize_request` of R requests at once; arguments and errors are the same, by columns.

    Args:
        keys: int64[N] or uint64[N], the keys of all requests.
        offsets: int64[R + 1]; request i has the keys `offsets[i]:offsets[i + 1]`.
        input_token_lens: int64[R], tokens.
        block_size_tokens: tokens of one analysis block.
        enable_prefix_hash: the keys are independent per-block hashes; chain them first.
        trace_block_size_tokens: tokens of one trace block; 0 means `block_size_tokens`.
    """
    trace_block = trace_block_size_tokens or block_size_tokens
    factor = check_granularity(block_size_tokens, trace_block)
    if len(offsets) != len(input_token_lens) + 1 or offsets[0] != 0 or offsets[-1] != len(keys):
        raise InvalidRequest(f"offsets must run from 0 to {len(keys)} in {len(input_token_lens) + 1} steps")
    prefix_keys = block_keys_array(keys)
    lengths = np.empty(len(input_token_lens), np.int64)
    wrong = int(_denominators(offsets, input_token_lens, trace_block, lengths))
    if wrong < len(lengths):
        raise LengthMismatch(int(offsets[wrong + 1] - offsets[wrong]), int(input_token_lens[wrong]), trace_block)
    if enable_prefix_hash:
        prefix_keys = _chained(prefix_keys, offsets)
    if factor > 1:
        counts = np.diff(offsets) // factor
        coarse_offsets = np.zeros_like(offsets)
        np.cumsum(counts, out=coarse_offsets[1:])
        coarse = np.empty(coarse_offsets[-1], np.int64)
        _coarsen(prefix_keys, offsets, factor, coarse_offsets, coarse)
        prefix_keys, offsets = coarse, coarse_offsets
    return NormalizedBatch(prefix_keys, offsets, lengths)


@kernel()
def _denominators(
    offsets: Int64Array, input_token_lens: Int64Array, trace_block_size_tokens: int, lengths: Int64Array
) -> int:
    """`denominator` of R requests, into `lengths`, int64[R]; the first whose length does not fit, or R."""
    for request in range(len(lengths)):
        count, stated = offsets[request + 1] - offsets[request], input_token_lens[request]
        if stated <= 0:
            lengths[request] = count * trace_block_size_tokens
        elif count == stated // trace_block_size_tokens:
            lengths[request] = stated
        else:
            return request
    return len(lengths)


def chain_keys(keys: Int64Array) -> Int64Array:
    """Independent hashes of a request's blocks, front to back, chained to prefix keys: int64[m]."""
    return _chained(keys, np.array([0, len(keys)], np.int64))


def _chained(raw: Int64Array, offsets: Int64Array) -> Int64Array:
    chained = np.empty_like(raw)
    _chain(raw, offsets, chained)
    return chained


@kernel(inline="always")
def _chain_step(h, v):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # SPEC section 3: unsigned 64-bit, logical right shift, starting at h = 0.
    return h ^ (v + uint64(0x9E3779B97F4A7C15) + (h << uint64(12)) + (h >> uint64(32)))


@kernel()
def _chain(raw: Int64Array, offsets: Int64Array, chained: Int64Array) -> None:
    for request in range(len(offsets) - 1):
        h = uint64(0)
        for i in range(offsets[request], offsets[request + 1]):
            h = _chain_step(h, uint64(raw[i]))
            chained[i] = np.int64(h)


@kernel()
def _coarsen(
    keys: Int64Array, offsets: Int64Array, factor: int, coarse_offsets: Int64Array, coarse: Int64Array
) -> None:
    for request in range(len(offsets) - 1):
        # The k-th key encodes all tokens of the first k trace blocks: exactly the first coarse block.
        source = offsets[request] + factor - 1
        for target in range(coarse_offsets[request], coarse_offsets[request + 1]):
            coarse[target] = keys[source]
            source += factor
