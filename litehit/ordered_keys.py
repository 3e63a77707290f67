"""Blocks whose keys ascend with their ids: they are found by their place, and stand in no table.

Traces often number their blocks in order of first sight, as Mooncake's do. A key that such a trace has not shown before
is greater than all that it has, and the place of any other can be guessed from those at both ends.
"""

from __future__ import annotations

import numpy as np

from litehit.jit import kernel
from litehit.key_table import Keys
from litehit.recency import Integer

_GUESSES = 3  # before the range is halved, lest keys that are spread unevenly take a step each


@kernel()
def find_ordered(key_of: Keys, count: Integer, key: Integer) -> Integer:
    """Id of a key among the blocks 0..count-1, at least one, or -1.

    A step or two where the keys are dense, a few where they are evenly spread, and O(log count) always.

    Args:
        key_of: their keys, ascending.
        count: how many there are.
        key: not above the last block's.
    """
    first, last = key_of[0], key_of[count - 1]
    if key < first:
        return -1
    density = np.float64(count - 1) / max(np.float64(np.uint64(last) - np.uint64(first)), 1.0)
    # It stands between these two, if anywhere.
    low, high = np.int64(-1), np.int64(count)
    at = np.int64(0)
    away = np.uint64(key) - np.uint64(first)  # from the key that stands there
    is_above = True
    guesses = 0
    while high - low > 1:
        if guesses == _GUESSES:
            at = (low + high) >> 1
            guesses = 0
        else:
            step = np.int64(np.float64(away) * density)
            at = min(max(at + step if is_above else at - step, low + 1), high - 1)
            guesses += 1
        found = key_of[at]
        if found == key:
            return at
        # Keys are integers and differ: from one to another there are no more blocks than the difference.
        is_above = found < key
        if is_above:
            away = np.uint64(key) - np.uint64(found)
            low = at
            if away < np.uint64(high - at):
                high = at + np.int64(away) + 1
        else:
            away = np.uint64(found) - np.uint64(key)
            high = at
            if away < np.uint64(at - low):
                low = at - np.int64(away) - 1
    return -1
