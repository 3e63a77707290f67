"""Keys of many requests, end to end in one array: some requests' taken out of it."""

from __future__ import annotations

import numpy as np

from litehit.curves import Int64Array
from litehit.pieces import gather


def gather_keys(keys: Int64Array, firsts: Int64Array, counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The keys of R requests without gaps, in their order: the keys int64[N], and int64[R + 1] where each one's begin.

    Args:
        keys: those of many requests.
        firsts: int64[R]; request i has the keys `firsts[i]:firsts[i] + counts[i]`.
        counts: int64[R].
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    first, total = int(firsts[0]) if len(firsts) else 0, int(offsets[-1])
    if np.array_equal(firsts, first + offsets[:-1]):
        return keys[first : first + total], offsets
    gathered = np.empty(total, np.int64)
    gather(keys, firsts, offsets, gathered)
    return gathered, offsets
