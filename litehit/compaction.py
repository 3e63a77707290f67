"""Renumbering: positions become dense again, and expired blocks leave."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from litehit.batch_kernel import BLOCKS, END_EPOCH, FIRST_EPOCH, FRONTIER, NEXT_POSITION, ORDERED, Scalars
from litehit.curves import Int64Array
from litehit.errors import StateError
from litehit.jit import kernel
from litehit.recency import Bitmap, Positions, live_before_words, rank


@kernel(allocates=True)
def renumber(
    scalars: Scalars,
    key_of: Int64Array,
    position_of: Positions,
    epoch_times: Int64Array,
    epoch_positions: Int64Array,
    bitmap: Bitmap,
) -> None:
    """Give the blocks that are not expired positions 0, 1, ... and ids 0, 1, ..., both in unchanged order.

    Linear in blocks, positions / 64 and epochs. The bitmap is only read: the caller fills it anew. Epochs in which no
    block was accessed last are dropped, so there are never more of them than blocks.
    """
    before = live_before_words(bitmap)
    frontier = scalars[FRONTIER]
    expired = rank(bitmap, before, frontier)
    kept = 0
    previous = np.int64(-1)
    renumbered = np.int64(0)
    ordered = scalars[ORDERED]
    for block in range(scalars[BLOCKS]):
        position = np.int64(position_of[block])
        if position >= frontier:
            # Chain neighbours stand next to each other: no live position lies between.
            if position == previous - 1:
                renumbered -= 1
            else:
                renumbered = np.int64(rank(bitmap, before, position) - expired)
            previous = position
            position_of[kept] = np.int32(renumbered)
            key_of[kept] = key_of[block]
            kept += 1
        elif block < scalars[ORDERED]:
            ordered -= 1
    epochs = 0
    for epoch in range(scalars[FIRST_EPOCH], scalars[END_EPOCH]):
        first = rank(bitmap, before, epoch_positions[epoch]) - expired
        if epochs > 0 and epoch_positions[epochs - 1] == first:
            epochs -= 1
        epoch_times[epochs] = epoch_times[epoch]
        epoch_positions[epochs] = first
        epochs += 1
    if epochs > 0 and epoch_positions[epochs - 1] == kept:
        epochs -= 1
    scalars[BLOCKS] = kept
    scalars[ORDERED] = ordered
    scalars[NEXT_POSITION] = kept
    scalars[FRONTIER] = 0
    scalars[FIRST_EPOCH] = 0
    scalars[END_EPOCH] = epochs


_ARRAYS = {
    "keys": np.int64,
    "positions": np.int32,
    "slots": np.uint64,
    "epoch_times": np.int64,
    "epoch_positions": np.int64,
    "clock": np.int64,
    "ttl": np.int64,
}


@kernel(allocates=True)
def _is_permutation(positions: Positions) -> bool:
    seen = np.zeros((len(positions) >> 6) + 1, np.uint64)
    for position in positions:
        if position < 0 or position >= len(positions):
            return False
        bit = np.uint64(1) << np.uint64(position & 63)
        if seen[position >> 6] & bit:
            return False
        seen[position >> 6] |= bit
    return True


def check_state(state: Mapping[str, np.ndarray]) -> None:
    """Check that arrays are a state as `LiteHit.state` gives it, except for the content of slots.

    Raises:
        StateError: names the array and what is wrong with it.
    """
    for name, dtype in _ARRAYS.items():
        if name not in state:
            raise StateError(f"{name} is missing")
        if state[name].dtype != dtype or state[name].ndim != 1:
            raise StateError(f"{name} is {state[name].ndim}-d {state[name].dtype}, not 1-d {dtype.__name__}")
    for name in ("clock", "ttl"):
        if len(state[name]) != 1:
            raise StateError(f"{name} has {len(state[name])} elements, not 1")
    ttl = int(state["ttl"][0])
    if ttl < 0:
        raise StateError(f"ttl {ttl} is negative")
    blocks = len(state["keys"])
    positions = state["positions"]
    for name in ("positions", "slots"):
        if len(state[name]) != blocks:
            raise StateError(f"{name} has {len(state[name])} elements for {blocks} keys")
    if not _is_permutation(positions):
        raise StateError(f"positions is no permutation of 0..{blocks - 1}")
    _check_epochs(state, ttl, blocks)


def _check_epochs(state: Mapping[str, np.ndarray], ttl: int, blocks: int) -> None:
    times, firsts = state["epoch_times"], state["epoch_positions"]
    if len(times) != len(firsts):
        raise StateError(f"epoch_positions has {len(firsts)} elements for {len(times)} epoch_times")
    if (ttl > 0 and blocks > 0) != (len(times) > 0):
        raise StateError(f"{len(times)} epochs for {blocks} blocks with ttl {ttl}")
    if len(times):
        if np.any(np.diff(times) <= 0) or times[-1] > state["clock"][0]:
            raise StateError("epoch_times do not ascend to the clock")
        if firsts[0] != 0 or firsts[-1] >= blocks or np.any(np.diff(firsts) <= 0):
            raise StateError(f"epoch_positions do not ascend from 0 to below {blocks}")
