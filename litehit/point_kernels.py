"""Kernels that choose points of curves, and find capacities on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel

Float64Array = NDArray[np.float64]


@kernel()
def candidates(
    bends: Int64Array, hits: Int64Array, rises: int, is_few: bool, found: Int64Array, found_hits: Int64Array
) -> int:
    """Capacities in blocks around equal rises of the hits, ascending, each once, and the hits there.

    Args:
        bends: int64[B], capacities where a curve bends, ascending; B is 2 at least.
        hits: int64[B], hit blocks there, of which the first is 0.
        rises: equal rises, from 1; a capacity on either side of each is found.
        is_few: every bend is a candidate, and not only the first and the last.
        found: to fill, of `2 * rises + B` places at least, or of `2 * rises + 2` where not every bend is a candidate.
        found_hits: likewise.

    Returns:
        How many places of them are filled.
    """
    last = len(bends) - 1
    step = hits[last] / rises
    found[0] = bends[0]
    end, bend, after = 1, 1, 1
    for rise in range(1, rises + 1):
        wanted = float(hits[last]) if rise == rises else rise * step
        while after < last and hits[after] < wanted:
            after += 1
        low, high = hits[after - 1], hits[after]
        # Only the choice of a capacity is rounded here, never the hits at it.
        along = (wanted - low) / max(high - low, 1)
        below = bends[after - 1] + np.int64(along * (bends[after] - bends[after - 1]))
        for capacity in (min(below, bends[after]), min(below + 1, bends[last])):
            if is_few:
                while bend < last and bends[bend] < capacity:
                    if bends[bend] > found[end - 1]:
                        found[end] = bends[bend]
                        end += 1
                    bend += 1
            if capacity > found[end - 1]:
                found[end] = capacity
                end += 1
    if bends[last] > found[end - 1]:
        found[end] = bends[last]
        end += 1
    bend = 0
    for place in range(end):
        while bend < last - 1 and bends[bend + 1] <= found[place]:
            bend += 1
        slope = (hits[bend + 1] - hits[bend]) // (bends[bend + 1] - bends[bend])
        found_hits[place] = hits[bend] + slope * (found[place] - bends[bend])
    return end


@kernel()
def merge_rises(
    offsets: Int64Array,
    capacities: NDArray[Any],
    hits: Float64Array,
    worths: Float64Array,
    spare: NDArray[Any],
    spare_hits: Float64Array,
) -> int:
    """Bring C curves' places together, ascending, each capacity once, with what the hits of all rise by there.

    It also runs over Python's integers, see `litehit.jit.interpreted`. Runs are merged in pairs, so that capacities
    which several curves have soon come up once.

    Args:
        offsets: int64[C + 1], as those of `curve_kernels`, of a curve at least; it is written over.
        capacities: integers[P], ascending for each curve; then the places.
        hits: float64[P], hit blocks there; then the rises, in what hits count.
        worths: float64[C], what a hit block of each counts.
        spare: room as of `capacities`.
        spare_hits: likewise.

    Returns:
        How many places there are.
    """
    curves = len(offsets) - 1
    for curve in range(curves):
        for place in range(offsets[curve + 1] - 1, offsets[curve], -1):
            hits[place] = (hits[place] - hits[place - 1]) * worths[curve]
        if offsets[curve] < offsets[curve + 1]:
            hits[offsets[curve]] *= worths[curve]
    read, read_hits, written, written_hits = capacities, hits, spare, spare_hits
    rounds = 0
    while curves > 1:
        end = 0
        for curve in range(0, curves, 2):
            left, left_end = offsets[curve], offsets[curve + 1]
            right, right_end = left_end, offsets[min(curve + 2, curves)]
            offsets[curve // 2] = end
            while left < left_end or right < right_end:
                take_left = left < left_end and (right == right_end or read[left] <= read[right])
                take_right = right < right_end and (left == left_end or read[right] <= read[left])
                written_hits[end] = 0.0
                if take_left:
                    written[end] = read[left]
                    written_hits[end] += read_hits[left]
                    left += 1
                if take_right:
                    written[end] = read[right]
                    written_hits[end] += read_hits[right]
                    right += 1
                end += 1
        curves = (curves + 1) // 2
        offsets[curves] = end
        read, read_hits, written, written_hits = written, written_hits, read, read_hits
        rounds += 1
    if rounds % 2:
        for place in range(offsets[1]):
            capacities[place] = read[place]
            hits[place] = read_hits[place]
    return int(offsets[1])


@kernel()
def equal_rises(hits: Float64Array, count: int, places: Int64Array) -> int:
    """Places at equal rises of the hits: the ends, those, and the ones before a jump beyond such a rise.

    Args:
        hits: float64[P], which do not fall; P is 2 at least.
        count: most places that are chosen, from 2.
        places: to fill, of `2 * count` places at least; ascending.

    Returns:
        How many places of it are filled.
    """
    last = len(hits) - 1
    total = hits[last] - hits[0]
    rises = count - 1
    while True:
        places[0] = 0
        end, reached = 1, 0
        for rise in range(rises + 1):
            wanted = hits[0] + total * rise / rises
            while reached < last and hits[reached] < wanted:
                reached += 1
            is_jump = reached > 0 and hits[reached] - hits[reached - 1] > total / rises
            if is_jump and reached - 1 > places[end - 1]:
                places[end] = reached - 1
                end += 1
            if reached > places[end - 1]:
                places[end] = reached
                end += 1
        if last > places[end - 1]:
            places[end] = last
            end += 1
        if end <= count:
            return end
        if rises == 1:
            places[1] = last
            return 2
        rises = max(1, min(rises - 1, rises * count // end))


@kernel()
def largest_errors(chosen: Int64Array, units: NDArray[Any], hits: NDArray[Any], is_linear: bool) -> tuple[float, int]:
    """How far hits may be from the straight lines between points.

    It also runs over Python's integers, see `litehit.jit.interpreted`.

    Args:
        chosen: int64[N], the points, as ascending indices of P places, the first and the last among them.
        units: integers[P], capacities, ascending.
        hits: integers[P], hits there.
        is_linear: hits are linear between neighbouring places; else, but for capacities next to each other, all that
            is known is that they do not fall.

    Returns:
        The largest error, and the largest rise from one point to the next.
    """
    worst, largest_rise = 0.0, hits[0] - hits[0]
    for point in range(len(chosen) - 1):
        begin, end = chosen[point], chosen[point + 1]
        # All counts from the point: exactly, and only then rounded.
        largest_rise = max(largest_rise, hits[end] - hits[begin])
        width, rise = float(units[end] - units[begin]), float(hits[end] - hits[begin])
        for place in range(begin, end):
            low_line = rise * (float(units[place] - units[begin]) / width)
            high_line = rise * (float(units[place + 1] - units[begin]) / width)
            low_hits, high_hits = float(hits[place] - hits[begin]), float(hits[place + 1] - hits[begin])
            if is_linear or units[place + 1] - units[place] == 1:
                error = max(abs(low_hits - low_line), abs(high_hits - high_line))
            else:
                # Inside, hits lie between those of the ends, and so does the line.
                error = max(high_hits - low_line, high_line - low_hits)
            worst = max(worst, error)
    return worst, largest_rise


@kernel()
def smallest_capacities(
    offsets: Int64Array,
    capacities: NDArray[Any],
    hits: NDArray[Any],
    charges: NDArray[Any],
    worths: NDArray[Any],
    wanted: NDArray[Any],
    enough: int,
    found: NDArray[Any],
) -> None:
    """The smallest capacity at which curves together have so many hits, by bisection.

    It also runs over Python's integers, see `litehit.jit.interpreted`: for that, no type is named in it.

    Args:
        offsets: int64[C + 1], as those of `curve_kernels`.
        capacities: where the curves bend, in blocks.
        hits: hit blocks there.
        charges: integers[C], what a block of each curve takes of a capacity.
        worths: integers[C], what a hit block of each counts.
        wanted: integers[K], hits.
        enough: a capacity that gives all of them.
        found: integers[K] to fill, capacities.
    """
    for slot in range(len(wanted)):
        low, high = enough - enough, enough
        while low < high:
            middle = low + (high - low) // 2
            reached = enough - enough
            for curve in range(len(charges)):
                place, after = offsets[curve], offsets[curve + 1] - 1
                if place > after:
                    continue
                capacity = middle // charges[curve]
                if capacity >= capacities[after]:
                    reached += hits[after] * worths[curve]
                    continue
                if capacity <= capacities[place]:
                    continue
                while after - place > 1:
                    between = (place + after) >> 1
                    if capacities[between] <= capacity:
                        place = between
                    else:
                        after = between
                slope = (hits[after] - hits[place]) // (capacities[after] - capacities[place])
                reached += (hits[place] + slope * (capacity - capacities[place])) * worths[curve]
            if reached >= wanted[slot]:
                high = middle
            else:
                low = middle + 1
        found[slot] = low


def warm_up() -> None:
    """Compile them, or load them from the cache: seconds that no question should wait."""
    ends, rising, found = np.array([0, 2]), np.array([0, 1]), np.empty(4, np.int64)
    one = np.ones(1, np.int64)
    candidates(rising, rising, 1, True, found, found.copy())
    merge_rises(np.array([0, 2]), rising.copy(), np.zeros(2), np.ones(1), rising.copy(), np.zeros(2))
    equal_rises(rising.astype(np.float64), 2, found)
    largest_errors(rising, rising, rising, True)
    smallest_capacities(ends, rising, rising, one, one, one, 1, found)
