"""`LiteHit`: exact LRU reuse distances of whole requests, for every capacity at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from litehit import batch_kernel, compaction, key_table, recency
from litehit.batch_kernel import BLOCKS, CLAMPED, CLOCK, END_EPOCH, FRONTIER, NEXT_POSITION, ORDERED, SCALARS, SEGMENTS
from litehit.curves import FlatCurves, Int64Array
from litehit.errors import StateError, TooManyBlocks
from litehit.frozen import FrozenCore, State
from litehit.mapped import MappedArray
from schemas.block_keys import BlockKeyArray, block_keys_array
from schemas.fact import HitCurve

MAX_BLOCKS = 2**30
"""Unique blocks one core may hold; ids and positions are 32-bit."""

_MAX_POSITIONS = 2**31 - recency.GROUP_BITS
_BLOCK_GROWTH = 1.5
_BEGINNING_OF_TIME = -(2**63)


class LiteHit:
    """One instance's LRU stack, and the hit curve of each request against it (SPEC section 4).

    The core knows no capacity and counts in blocks. It is not safe for use by two threads at once, but its work runs
    without the interpreter's lock.

    Args:
        ttl: time to live of a block since its last access, in the unit of `now`; 0 = off. A block is alive while
            `now - last_access < ttl`.
        slack_positions: dead positions that are tolerated before a compaction, beyond seven for each live one.
    """

    def __init__(self, ttl: int = 0, *, slack_positions: int = 4096) -> None:
        if not 0 <= ttl < 2**63:
            raise ValueError(f"ttl {ttl} is not in 0..2**63-1; 0 turns it off")
        if slack_positions < 0:
            raise ValueError(f"slack_positions {slack_positions} is negative")
        self.ttl = ttl
        self._slack = slack_positions
        self.reset()

    def reset(self) -> None:
        """Forget every block and the time."""
        self._scalars = np.zeros(SCALARS, np.int64)
        self._scalars[CLOCK] = _BEGINNING_OF_TIME
        self._keys = MappedArray(np.int64)  # by block id
        self._positions = MappedArray(np.int32)  # by block id
        self._table = key_table.allocate(key_table.slots_for(0))
        self._bitmap, self._fenwick = recency.allocate(1)
        self._epoch_times = np.empty(0, np.int64)
        self._epoch_positions = np.empty(0, np.int64)
        self._run_ids = np.empty(0, np.int64)
        self._run_lengths = np.empty(0, np.int64)

    # --- requests -----------------------------------------------------------------------------------------------

    def process_request(
        self, block_keys: Sequence[int] | BlockKeyArray | NDArray[np.uint64], now: int | None = None
    ) -> HitCurve:
        """The hit curve of one request on the state before it; then commit all its blocks.

        Args:
            block_keys: prefix keys, front to back; int64 or uint64 integers.
            now: the request's time, used only for the TTL; one that goes back is clamped. None: the time of the
                request before.

        Raises:
            BlockKeyError: a key is no 64-bit integer.
            TooManyBlocks: the core would exceed `MAX_BLOCKS`; the request is not processed.
        """
        keys = block_keys_array(block_keys)
        times = None if now is None else np.array([now], np.int64)
        return self.process_batch(keys, np.array([0, len(keys)], np.int64), times)[0]

    def process_batch(
        self, keys: Int64Array | NDArray[np.uint64], offsets: Int64Array, times: Int64Array | None = None
    ) -> FlatCurves:
        """`process_request` of R requests in order.

        Args:
            keys: int64[N] or uint64[N], the keys of all requests.
            offsets: int64[R + 1], ascending from 0 to N; request i has the keys `offsets[i]:offsets[i + 1]`.
            times: int64[R], their times; None: all at the time of the request before.

        Returns:
            R curves.

        Raises:
            BlockKeyError: the keys are no 64-bit integers; nothing is processed.
            ValueError: the arrays do not fit together, or have another type; nothing is processed.
            TooManyBlocks: the core would exceed `MAX_BLOCKS`. The requests before have been processed; go on only
                after `reset()`.
        """
        keys = block_keys_array(keys)
        count = len(offsets) - 1
        if times is None:
            times = np.full(max(count, 0), self._scalars[CLOCK])
        for name, array in (("offsets", offsets), ("times", times)):
            # The kernels would be compiled for any other type, and not all of those count exactly.
            if array.dtype != np.int64:
                raise ValueError(f"{name} has the type {array.dtype}; give int64")
        if count < 0 or offsets[0] != 0 or offsets[-1] != len(keys) or np.any(offsets[1:] < offsets[:-1]):
            raise ValueError(f"offsets must ascend from 0 to {len(keys)}")
        if len(times) != count:
            raise ValueError(f"{len(times)} times for {count} requests")
        # A segment has a block at least. What is not written costs nothing: the system gives a page at its first use.
        starts = np.empty(len(keys), np.int64)
        runs = np.empty_like(starts)
        segment_offsets = np.zeros(count + 1, np.int64)
        self._scalars[SEGMENTS] = 0
        done = 0
        while True:
            done = int(
                batch_kernel.process(
                    done,
                    keys,
                    offsets,
                    times,
                    self.ttl,
                    self._scalars,
                    self._keys.array,
                    self._positions.array,
                    self._table,
                    key_table.blocks_in(len(self._table)),
                    self._bitmap,
                    self._fenwick,
                    self._epoch_times,
                    self._epoch_positions,
                    self._run_ids,
                    self._run_lengths,
                    starts,
                    runs,
                    segment_offsets,
                )
            )
            segments = int(self._scalars[SEGMENTS])
            if done == count:
                return FlatCurves(starts[:segments].copy(), runs[:segments].copy(), segment_offsets)
            self._make_room(int(offsets[done + 1] - offsets[done]), done)

    def advance_time(self, now: int) -> None:
        """Move the clock without a request, so that expired blocks leave the counts and the memory.

        A time that goes back is clamped, as in a request.
        """
        batch_kernel.advance(
            now, self.ttl, self._scalars, self._epoch_times, self._epoch_positions, self._bitmap, self._fenwick
        )
        if 2 * self.current_unique_blocks() < self._scalars[BLOCKS] - self._slack:
            self._compact(0)

    # --- what it holds ------------------------------------------------------------------------------------------

    def current_unique_blocks(self) -> int:
        """Blocks seen and, under a TTL, not expired at the time of the last request or `advance_time`."""
        return int(self._scalars[BLOCKS]) - self._expired_blocks()

    def is_fresh(self) -> bool:
        """Whether it is as after `reset()`: no request has left a trace in it."""
        return bool(self._scalars[BLOCKS] == 0 and self._scalars[CLOCK] == _BEGINNING_OF_TIME)

    def clamped_requests(self) -> int:
        """Requests whose time went back and was clamped, since the start or the last `reset()`."""
        return int(self._scalars[CLAMPED])

    def memory_usage_bytes(self) -> int:
        """Bytes of the arrays the core holds, whether filled or kept for growth."""
        return sum(
            array.nbytes
            for array in (
                self._keys.array,
                self._positions.array,
                self._table,
                self._bitmap,
                self._fenwick,
                self._epoch_times,
                self._epoch_positions,
                self._run_ids,
                self._run_lengths,
            )
        )

    def recency_order(self) -> Int64Array:
        """Keys of the blocks that are not expired, most recently used first: int64[U] for U blocks."""
        blocks = int(self._scalars[BLOCKS])
        positions = self._positions.array[:blocks]
        alive = np.flatnonzero(positions >= self._scalars[FRONTIER])
        return self._keys.array[alive[np.argsort(positions[alive])[::-1]]]

    def freeze(self) -> FrozenCore:
        """A copy of all it holds, quickly made; its `state` is this core's."""
        blocks = int(self._scalars[BLOCKS])
        epochs = int(self._scalars[END_EPOCH])
        return FrozenCore(
            self.ttl,
            self._scalars,
            self._keys.array[:blocks],
            self._positions.array[:blocks],
            self._epoch_times[:epochs],
            self._epoch_positions[:epochs],
            self._bitmap,
        )

    def state(self) -> State:
        """The whole state as plain arrays that share no memory with the core; U blocks, E epochs.

        `keys` int64[U] in order of first sight; `positions` int32[U], a permutation of 0..U-1, the least recently
        used block at 0; `slots` uint64[U], ascending: the upper half of each key's hash, below it its place in `keys`
        plus 1; `epoch_times` int64[E] and `epoch_positions` int64[E]: positions from `epoch_positions[e]` on were last
        accessed at `epoch_times[e]`; `clock` int64[1]; `ttl` int64[1].
        """
        return self.freeze().state

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], *, slack_positions: int = 4096) -> LiteHit:
        """A core that goes on exactly where the one whose `state()` this is stood; the arrays are copied.

        Raises:
            StateError: an array is missing, has another type or length, or contradicts another.
        """
        compaction.check_state(state)
        core = cls(int(state["ttl"][0]), slack_positions=slack_positions)
        blocks = len(state["keys"])
        if blocks > MAX_BLOCKS:
            raise StateError(f"keys has {blocks} blocks, more than the limit of {MAX_BLOCKS}")
        core._keys.resize(blocks)
        core._keys.array[:] = state["keys"]
        core._positions.resize(blocks)
        core._positions.array[:] = state["positions"]
        core._epoch_times = state["epoch_times"].copy()
        core._epoch_positions = state["epoch_positions"].copy()
        core._scalars[BLOCKS] = core._scalars[NEXT_POSITION] = blocks
        core._scalars[CLOCK] = state["clock"][0]
        core._scalars[END_EPOCH] = len(core._epoch_times)
        core._allocate_order(blocks, 0)
        core._table = key_table.allocate(key_table.slots_for(blocks))
        wrong = key_table.fill_sorted(core._table, core._keys.array, state["slots"])
        if wrong >= 0:
            raise StateError(f"slots[{wrong}] = {int(state['slots'][wrong]):#x} fits neither keys nor the slots before")
        return core

    # --- room ---------------------------------------------------------------------------------------------------

    def _expired_blocks(self) -> int:
        frontier = int(self._scalars[FRONTIER])
        return int(recency.count_through(self._bitmap, self._fenwick, frontier - 1)) if frontier else 0

    def _make_room(self, count: int, request: int) -> None:
        """Make the batch's request number `request`, which has `count` blocks, fit."""
        scalars = self._scalars
        if count > len(self._run_ids):
            self._run_ids = np.empty(2 * count, np.int64)
            self._run_lengths = np.empty(2 * count, np.int64)
        if self.ttl and scalars[END_EPOCH] >= len(self._epoch_times):
            self._compact(count)
            needed = 2 * int(scalars[END_EPOCH]) + 64
            self._epoch_times = _resized(self._epoch_times, needed)
            self._epoch_positions = _resized(self._epoch_positions, needed)
        if scalars[NEXT_POSITION] + count > 64 * len(self._bitmap):
            self._compact(count)
        if not self._holds(count):
            # Dropping what has expired may be room enough; where it is little, growing now is cheaper.
            if 4 * self._expired_blocks() > scalars[BLOCKS]:
                self._compact(count)
            self._grow_blocks(count, request)

    def _holds(self, count: int) -> bool:
        """Whether there is room for `count` more blocks."""
        blocks = int(self._scalars[BLOCKS])
        in_table = blocks - int(self._scalars[ORDERED])
        return blocks + count <= len(self._keys.array) and in_table + count <= key_table.blocks_in(len(self._table))

    def _grow_blocks(self, count: int, request: int) -> None:
        blocks = int(self._scalars[BLOCKS])
        needed = blocks + count
        if needed > MAX_BLOCKS:
            raise TooManyBlocks(needed, MAX_BLOCKS, request)
        if needed > len(self._keys.array):
            size = min(MAX_BLOCKS, int(needed * _BLOCK_GROWTH) + 64)
            self._keys.resize(size)
            self._positions.resize(size)
        ordered = int(self._scalars[ORDERED])
        if needed - ordered > key_table.blocks_in(len(self._table)):
            # Where most stand in the table, the rest is cheaper found there too.
            taken_in = ordered if ordered < blocks - ordered else 0
            larger = key_table.allocate(key_table.slots_for(needed - ordered + taken_in))
            key_table.move_all(self._table, larger)
            key_table.insert_all(larger, self._keys.array, 0, taken_in)
            self._table = larger
            self._scalars[ORDERED] = ordered - taken_in

    def _compact(self, count: int) -> None:
        """Renumber the positions densely, drop expired blocks, and leave room for a request of `count` blocks."""
        expired = self._expired_blocks()
        compaction.renumber(
            self._scalars,
            self._keys.array,
            self._positions.array,
            self._epoch_times,
            self._epoch_positions,
            self._bitmap,
        )
        blocks = int(self._scalars[BLOCKS])
        self._allocate_order(blocks, count)
        if expired:
            self._keys.resize(int(blocks * _BLOCK_GROWTH) + 64)
            self._positions.resize(len(self._keys.array))
            self._rebuild_table()

    def _allocate_order(self, blocks: int, count: int) -> None:
        """A recency order in which exactly the positions 0..blocks-1 are live, with room above."""
        positions = min(_MAX_POSITIONS, 8 * blocks + self._slack + count)
        groups = recency.group_count(max(1, positions))
        if groups != len(self._fenwick) - 1:
            self._bitmap, self._fenwick = recency.allocate(groups)
        recency.fill(self._bitmap, self._fenwick, blocks)

    def _rebuild_table(self) -> None:
        blocks, ordered = int(self._scalars[BLOCKS]), int(self._scalars[ORDERED])
        self._table = key_table.allocate(key_table.slots_for(blocks - ordered))
        key_table.insert_all(self._table, self._keys.array, ordered, blocks)


def _resized(array: np.ndarray, size: int) -> np.ndarray:
    """A longer or shorter copy."""
    copy = np.empty(size, array.dtype)
    kept = min(size, len(array))
    copy[:kept] = array[:kept]
    return copy
