"""Kernels over the flat arrays of `CurveTable`.

A curve is the places `low:high` of two arrays: capacities b, ascending, and the hits h there. Up to its first capacity
it has no hits, behind its last none is added, and between two it grows by the same whole number for each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel


@kernel()
def add_hits(
    rows: Int64Array,
    offsets: Int64Array,
    capacities: NDArray[Any],
    hits: NDArray[Any],
    asked: Int64Array,
    found: Int64Array,
) -> None:
    """Add to `found[rows[i]]` the hits of curve i at the capacities `asked[rows[i]]`; negative rows are left out.

    Args:
        rows: int64[C].
        offsets: int64[C + 1].
        capacities: of the curves, uint32 or int64.
        hits: of the curves, of the same type.
        asked: int64[R, K], blocks; negative is infinite.
        found: int64[R, K].
    """
    for curve in range(len(rows)):
        row, low, high = rows[curve], offsets[curve], offsets[curve + 1]
        if row < 0 or low == high:
            continue
        last = high - 1
        place = low
        for slot in range(asked.shape[1]):
            capacity = asked[row, slot]
            if capacity < 0 or capacity >= np.int64(capacities[last]):
                found[row, slot] += np.int64(hits[last])
                continue
            if capacity <= np.int64(capacities[low]):
                continue
            # From where the capacity before was found, in growing steps: most often they ascend.
            if np.int64(capacities[place]) <= capacity:
                after, step = place + 1, 1
                while np.int64(capacities[after]) <= capacity:
                    place, step = after, 2 * step
                    after = min(after + step, last)
            else:
                place, after = low, place
            while after - place > 1:
                middle = (place + after) >> 1
                if np.int64(capacities[middle]) <= capacity:
                    place = middle
                else:
                    after = middle
            begin, base = np.int64(capacities[place]), np.int64(hits[place])
            slope = (np.int64(hits[after]) - base) // (np.int64(capacities[after]) - begin)
            found[row, slot] += base + slope * (capacity - begin)


@kernel()
def add_counts(codes: Int64Array, values: Int64Array, counts: Int64Array, sums: Int64Array) -> None:
    """Count R values, and add them up, by code: `counts[codes[i]] += 1`, `sums[codes[i]] += values[i]`."""
    for i in range(len(codes)):
        counts[codes[i]] += 1
        sums[codes[i]] += values[i]


@kernel()
def pack_events(
    codes: Int64Array, offsets: Int64Array, starts: Int64Array, runs: Int64Array, bits: int, events: Int64Array
) -> None:
    """Where slopes change, as integers that sort by code and capacity: (code, capacity, 0 up or 1 down).

    Args:
        codes: int64[R], of each curve.
        offsets: int64[R + 1], of each curve's segments.
        starts: int64[S].
        runs: int64[S].
        bits: of a capacity.
        events: int64[2 S] to fill.
    """
    for row in range(len(codes)):
        code = codes[row] << (bits + 1)
        for segment in range(offsets[row], offsets[row + 1]):
            below = starts[segment] - 1
            events[2 * segment] = code | (below << 1)
            events[2 * segment + 1] = code | ((below + runs[segment]) << 1) | 1


@kernel()
def fold_events(
    events: Int64Array, bits: int, codes: Int64Array, offsets: Int64Array, capacities: Int64Array, hits: Int64Array
) -> int:
    """Curves of sorted events.

    Args:
        events: of `pack_events`, sorted.
        bits: of a capacity.
        codes: int64[C], ascending; every event's code is among them.
        offsets: int64[C + 1] to fill.
        capacities: to fill, as long as the events at most.
        hits: to fill, likewise.

    Returns:
        How many places of them are filled.
    """
    mask = (np.int64(1) << bits) - 1
    event, end = 0, 0
    for curve in range(len(codes)):
        offsets[curve] = end
        slope, reached, before = np.int64(0), np.int64(0), np.int64(0)
        while event < len(events) and events[event] >> (bits + 1) == codes[curve]:
            capacity = (events[event] >> 1) & mask
            change = np.int64(0)
            while event < len(events) and events[event] >> 1 == (codes[curve] << bits) | capacity:
                change += 1 - 2 * (events[event] & 1)
                event += 1
            if change != 0:
                reached += slope * (capacity - before)
                capacities[end] = capacity
                hits[end] = reached
                end += 1
                slope += change
                before = capacity
    offsets[len(codes)] = end
    return end


@kernel(inline="always")
def _slope(capacities: Int64Array, hits: Int64Array, place: int, last: int) -> Any:
    """Of the piece that begins at a place, the last of a curve or one before it."""
    if place == last:
        return np.int64(0)
    return (hits[place + 1] - hits[place]) // (capacities[place + 1] - capacities[place])


@kernel()
def merge(
    a_codes: Int64Array,
    a_offsets: Int64Array,
    a_capacities: Int64Array,
    a_hits: Int64Array,
    b_codes: Int64Array,
    b_offsets: Int64Array,
    b_capacities: Int64Array,
    b_hits: Int64Array,
    codes: Int64Array,
    offsets: Int64Array,
    capacities: Int64Array,
    hits: Int64Array,
) -> int:
    """Add up two tables, code by code.

    Args:
        a_codes: of one table's curves, ascending.
        a_offsets: of its curves.
        a_capacities: of its curves.
        a_hits: of its curves.
        b_codes: those of the other.
        b_offsets: likewise.
        b_capacities: likewise.
        b_hits: likewise.
        codes: those that one of the two has, ascending.
        offsets: to fill, one longer than the codes.
        capacities: to fill, as long as those of both tables together at most.
        hits: to fill, likewise.

    Returns:
        How many places of them are filled.
    """
    a, b, end = 0, 0, 0
    for curve in range(len(codes)):
        offsets[curve] = end
        left, left_end, right, right_end = 0, 0, 0, 0
        if a < len(a_codes) and a_codes[a] == codes[curve]:
            left, left_end = a_offsets[a], a_offsets[a + 1]
            a += 1
        if b < len(b_codes) and b_codes[b] == codes[curve]:
            right, right_end = b_offsets[b], b_offsets[b + 1]
            b += 1
        left_last, right_last = left_end - 1, right_end - 1
        left_slope, right_slope = np.int64(0), np.int64(0)
        slope, reached, before = np.int64(0), np.int64(0), np.int64(0)
        while left < left_end or right < right_end:
            take_left = left < left_end and (right == right_end or a_capacities[left] <= b_capacities[right])
            take_right = right < right_end and (left == left_end or b_capacities[right] <= a_capacities[left])
            capacity = np.int64(0)
            if take_left:
                capacity = a_capacities[left]
                left_slope = _slope(a_capacities, a_hits, left, left_last)
                left += 1
            if take_right:
                capacity = b_capacities[right]
                right_slope = _slope(b_capacities, b_hits, right, right_last)
                right += 1
            if left_slope + right_slope != slope:
                reached += slope * (capacity - before)
                capacities[end] = capacity
                hits[end] = reached
                end += 1
                slope = left_slope + right_slope
                before = capacity
    offsets[len(codes)] = end
    return end
