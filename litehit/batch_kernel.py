"""The core's loop over a batch of requests: evaluate on the snapshot, then commit tail to head (SPEC section 4).

Blocks have ids in order of first sight, so the blocks of a chain have neighbouring ids, and a tail-to-head commit gives
them neighbouring positions. A run is a stretch of a request whose ids ascend by 1 and whose positions descend by 1: it
is found by comparing arrays in sequence, its thresholds ascend by 1, and it is committed by range operations. Only
where a run breaks is the table asked for an id and the recency order for a count.

As long as each new key is greater than all before, none goes into the table: see `ordered_keys`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel
from litehit.key_table import Table, find, find_or_insert, prefetch
from litehit.ordered_keys import find_ordered
from litehit.recency import Bitmap, Fenwick, Integer, Positions, clear_range, count_through, set_range

Scalars: TypeAlias = NDArray[np.int64]

# Places in the array of scalars that the kernels read and write.
BLOCKS = 0  # ids given out
NEXT_POSITION = 1  # every live position is below it
CLOCK = 2  # time of the newest request, clamped to be monotone
FRONTIER = 3  # live positions below it belong to expired blocks
FIRST_EPOCH = 4  # epochs in use: FIRST_EPOCH..END_EPOCH-1
END_EPOCH = 5
SEGMENTS = 6  # segments written to the output
CLAMPED = 7  # requests whose time went back
ORDERED = 8  # the blocks 0..ORDERED-1 have ascending keys, and are not in the table; all others are
SCALARS = 9

_STRETCH = 16  # blocks of a run compared at once
_AHEAD = 12  # blocks between the prefetch of a table slot and its use: about one memory latency


@kernel()
def process(
    first: Integer,
    keys: Int64Array,
    offsets: Int64Array,
    times: Int64Array,
    ttl: Integer,
    scalars: Scalars,
    key_of: Int64Array,
    position_of: Positions,
    table: Table,
    table_limit: Integer,
    bitmap: Bitmap,
    fenwick: Fenwick,
    epoch_times: Int64Array,
    epoch_positions: Int64Array,
    run_ids: Int64Array,
    run_lengths: Int64Array,
    starts: Int64Array,
    runs: Int64Array,
    segment_offsets: Int64Array,
) -> Integer:
    """Process the requests `first`, `first + 1`, ... while their blocks surely fit into the arrays.

    Returns the first request that was not processed: their number when all were; the caller makes room and goes on.
    """
    for request in range(first, len(offsets) - 1):
        low = offsets[request]
        high = offsets[request + 1]
        count = high - low
        if (
            scalars[BLOCKS] + count > len(key_of)
            or scalars[BLOCKS] - scalars[ORDERED] + count > table_limit
            or scalars[NEXT_POSITION] + count > len(bitmap) * 64
            or count > len(run_ids)
            or (ttl > 0 and scalars[END_EPOCH] >= len(epoch_times))
        ):
            return request
        advance(times[request], ttl, scalars, epoch_times, epoch_positions, bitmap, fenwick)
        if ttl > 0 and count > 0:
            _open_epoch(scalars, epoch_times, epoch_positions)
        base = scalars[NEXT_POSITION]
        hit, run_count, distinct = _evaluate(
            low, high, keys, scalars, key_of, position_of, table, bitmap, fenwick, run_ids, run_lengths, starts, runs
        )
        segment_offsets[request + 1] = scalars[SEGMENTS]
        top = base + count - 1
        if distinct:
            _commit_runs(top, run_count, run_ids, run_lengths, position_of, bitmap, fenwick)
            committed = hit
        else:
            # A key repeats inside the request: only the block-by-block way sees which occurrence is the first.
            hit = 0
            committed = 0
        committed += _commit_blocks(
            low + hit, high, top - committed, base, keys, scalars, key_of, position_of, table, bitmap, fenwick
        )
        if committed > 0:
            set_range(bitmap, fenwick, top - committed + 1, top)
        scalars[NEXT_POSITION] = base + count
    return len(offsets) - 1


@kernel()
def advance(
    now: Integer,
    ttl: Integer,
    scalars: Scalars,
    epoch_times: Int64Array,
    epoch_positions: Int64Array,
    bitmap: Bitmap,
    fenwick: Fenwick,
) -> None:
    """Move the clock to `now`, or leave it where `now` goes back, and the frontier behind what has expired."""
    if now < scalars[CLOCK]:
        scalars[CLAMPED] += 1
        return
    scalars[CLOCK] = now
    if ttl <= 0:
        return
    epoch = scalars[FIRST_EPOCH]
    # now >= every epoch's time, so the unsigned difference is exact over the whole int64 range.
    while epoch < scalars[END_EPOCH] and np.uint64(now) - np.uint64(epoch_times[epoch]) >= np.uint64(ttl):
        epoch += 1
    scalars[FIRST_EPOCH] = epoch
    scalars[FRONTIER] = epoch_positions[epoch] if epoch < scalars[END_EPOCH] else scalars[NEXT_POSITION]


@kernel(inline="always")
def _open_epoch(scalars: Scalars, epoch_times: Int64Array, epoch_positions: Int64Array) -> None:
    """Note that positions from here on were accessed at the clock's time.

    Ages are monotone along the recency order, so "expired" is one comparison of a position with the frontier and
    no block needs a time of its own.
    """
    end = scalars[END_EPOCH]
    if end > scalars[FIRST_EPOCH] and epoch_times[end - 1] == scalars[CLOCK]:
        return
    epoch_times[end] = scalars[CLOCK]
    epoch_positions[end] = scalars[NEXT_POSITION]
    scalars[END_EPOCH] = end + 1


@kernel()
def _run_length(keys: Int64Array, key_of: Int64Array, position_of: Positions, position: Integer) -> Integer:
    """Blocks, all arrays being of their number, whose keys agree and whose positions descend from `position` by 1.

    The first block is known to qualify. Whole stretches are compared without a branch, so the loop is vectorised.
    """
    count = len(keys)
    length = 1
    while length + _STRETCH <= count:
        difference = np.int64(0)
        for i in range(length, length + _STRETCH):
            difference |= (keys[i] ^ key_of[i]) | (np.int64(position_of[i]) ^ (position - i))
        if difference != 0:
            break
        length += _STRETCH
    while length < count and keys[length] == key_of[length] and position_of[length] == position - length:
        length += 1
    return length


@kernel(inline="always")
def _find_in_order(key_of: Int64Array, ordered: Integer, key: Integer) -> Any:
    """Id of a key among the blocks that are in no table, or -1."""
    block = np.int64(-1)
    if ordered > 0 and key <= key_of[ordered - 1]:
        block = np.int64(find_ordered(key_of, ordered, key))
    return block


@kernel(inline="always")
def _find_or_insert(table: Table, key_of: Int64Array, ordered: Integer, blocks: Integer, key: Integer) -> Any:
    """Id of a key; an unknown key gets the id `blocks`, and a place in the table."""
    block = _find_in_order(key_of, ordered, key)
    if block < 0:
        block = np.int64(find_or_insert(table, key_of, key, blocks))
    return block


@kernel()
def _evaluate(
    low: Integer,
    high: Integer,
    keys: Int64Array,
    scalars: Scalars,
    key_of: Int64Array,
    position_of: Positions,
    table: Table,
    bitmap: Bitmap,
    fenwick: Fenwick,
    run_ids: Int64Array,
    run_lengths: Int64Array,
    starts: Int64Array,
    runs: Int64Array,
) -> tuple[Integer, Integer, bool]:
    """Write one request's hit curve, and the runs of its blocks before the first miss.

    Returns the number of those blocks, the number of runs, and whether the blocks are surely distinct.
    """
    blocks = scalars[BLOCKS]
    ordered = scalars[ORDERED]
    frontier = scalars[FRONTIER]
    segment = scalars[SEGMENTS] - 1
    run_count = 0
    distinct = True
    last = np.int64(0)  # the last encoded threshold
    required = np.int64(0)  # capacity that holds the block just seen
    highest = np.int64(0)  # the running maximum of the required capacities
    previous = np.int64(-1)  # position of the block before
    block = np.int64(-1)
    at = low
    while at < high:
        key = keys[at]
        block += 1
        if block >= blocks or key_of[block] != key:
            block = _find_in_order(key_of, ordered, key)
            if block < 0 and ordered < blocks:
                block = np.int64(find(table, key_of, key))
            if block < 0:
                break
        position = np.int64(position_of[block])
        if position < frontier:
            break
        run_ids[run_count] = block
        room = min(high - at, blocks - block, position - frontier + 1)
        length = _run_length(
            keys[at : at + room], key_of[block : block + room], position_of[block : block + room], position
        )
        block += length - 1
        at += length
        run_lengths[run_count] = length
        run_count += 1
        if position == previous - 1:
            required += 1
        else:
            # Every block has one live position, so the newer ones are the blocks less those up to this position.
            required = blocks - count_through(bitmap, fenwick, position) + 1
            if previous >= 0 and position >= previous:
                distinct = False
        highest = max(highest, required)
        threshold = max(highest, last + 1)
        if threshold == last + 1 and last > 0:
            runs[segment] += length
        else:
            segment += 1
            starts[segment] = threshold
            runs[segment] = length
        # Inside a run the required capacity and the encoded threshold both grow by 1 a block.
        required += length - 1
        highest = max(highest, required)
        last = threshold + length - 1
        previous = position - length + 1
    scalars[SEGMENTS] = segment + 1
    return at - low, run_count, distinct


@kernel()
def _commit_runs(
    top: Integer,
    run_count: Integer,
    run_ids: Int64Array,
    run_lengths: Int64Array,
    position_of: Positions,
    bitmap: Bitmap,
    fenwick: Fenwick,
) -> None:
    """Give the blocks of the runs the positions top, top - 1, ...; their old positions die."""
    dead_low = np.int64(0)
    dead_high = np.int64(-1)
    for run in range(run_count):
        block = run_ids[run]
        length = run_lengths[run]
        old = np.int64(position_of[block])
        if old != dead_low - 1:
            if dead_high >= 0:
                clear_range(bitmap, fenwick, dead_low, dead_high)
            dead_high = old
        dead_low = old - length + 1
        for i in range(length):
            position_of[block + i] = np.int32(top - i)
        top -= length
    if dead_high >= 0:
        clear_range(bitmap, fenwick, dead_low, dead_high)


@kernel()
def _commit_blocks(
    low: Integer,
    high: Integer,
    top: Integer,
    base: Integer,
    keys: Int64Array,
    scalars: Scalars,
    key_of: Int64Array,
    position_of: Positions,
    table: Table,
    bitmap: Bitmap,
    fenwick: Fenwick,
) -> Integer:
    """Give the blocks of keys low..high-1 the positions top, top - 1, ..., unknown keys an id first.

    A block whose position is at or above `base` has had its first occurrence in this request already. Returns the
    number of positions given.
    """
    blocks = scalars[BLOCKS]
    ordered = scalars[ORDERED]
    next_position = np.int64(top)
    dead_low = np.int64(0)
    dead_high = np.int64(-1)
    block = np.int64(-1)
    asks_table = ordered < blocks
    if asks_table:
        for at in range(low, min(high, low + _AHEAD)):
            prefetch(table, keys[at])
    for at in range(low, high):
        if asks_table and at + _AHEAD < high:
            prefetch(table, keys[at + _AHEAD])
        key = keys[at]
        block += 1
        if block >= blocks or key_of[block] != key:
            if ordered == blocks and (blocks == 0 or key > key_of[blocks - 1]):
                block = blocks
                key_of[block] = key
                ordered += 1
            else:
                block = _find_or_insert(table, key_of, ordered, blocks, key)
            if block == blocks:
                blocks += 1
                position_of[block] = np.int32(next_position)
                next_position -= 1
                continue
        old = np.int64(position_of[block])
        if old >= base:
            continue
        if old != dead_low - 1:
            if dead_high >= 0:
                clear_range(bitmap, fenwick, dead_low, dead_high)
            dead_high = old
        dead_low = old
        position_of[block] = np.int32(next_position)
        next_position -= 1
    if dead_high >= 0:
        clear_range(bitmap, fenwick, dead_low, dead_high)
    scalars[BLOCKS] = blocks
    scalars[ORDERED] = ordered
    return top - next_position
