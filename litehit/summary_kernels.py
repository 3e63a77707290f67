"""Kernels that make summaries of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel

COUNTS, RATES = 4, 3
"""Numbers of a row at a capacity: hit blocks, hit tokens, and what a GB more adds to each; then the hit rate, its share
of the ceiling, and what a GB more adds to the hit rate."""


@kernel()
def summarise(
    rows: Int64Array,
    hits: NDArray[Any],
    worths: NDArray[Any],
    input_tokens: NDArray[Any],
    ceiling_tokens: NDArray[Any],
    counts: NDArray[Any],
    rates: NDArray[np.float64],
) -> None:
    """Add up hits by row, and divide them.

    It also runs over Python's integers, see `litehit.jit.interpreted`: for that, no type is named in it.

    Args:
        rows: int64[N], the row of each group; 0 for one that counts in the total alone, which is row 0.
        hits: integers[N, 2 K], hit blocks of each group at K capacities, then at those with a GB more.
        worths: integers[N], tokens of a block.
        input_tokens: integers[R], of each row.
        ceiling_tokens: integers[R], hit tokens at infinite capacity.
        counts: integers[R, COUNTS * K] to add to.
        rates: float64[R, RATES * K] to fill. A row without tokens has rates of 0.0, and all of its ceiling of nothing.
    """
    slots = hits.shape[1] // 2
    for group in range(len(rows)):
        row, worth = rows[group], worths[group]
        for slot in range(slots):
            blocks = hits[group, slot]
            gained = hits[group, slots + slot] - blocks
            counts[0, slot] += blocks
            counts[0, slots + slot] += blocks * worth
            counts[0, 2 * slots + slot] += gained
            counts[0, 3 * slots + slot] += gained * worth
            if row > 0:
                counts[row, slot] += blocks
                counts[row, slots + slot] += blocks * worth
                counts[row, 2 * slots + slot] += gained
                counts[row, 3 * slots + slot] += gained * worth
    for row in range(len(counts)):
        tokens, ceiling = max(input_tokens[row], 1), ceiling_tokens[row]
        for slot in range(slots):
            hit = counts[row, slots + slot]
            rates[row, slot] = hit / tokens
            rates[row, slots + slot] = hit / ceiling if ceiling > 0 else 1.0
            rates[row, 2 * slots + slot] = counts[row, 3 * slots + slot] / tokens


def warm_up() -> None:
    """Compile them, or load them from the cache: seconds that no question should wait."""
    one = np.ones(1, np.int64)
    counts, rates = np.zeros((2, COUNTS), np.int64), np.empty((2, RATES))
    summarise(one, np.ones((1, 2), np.int64), one, np.ones(2, np.int64), np.ones(2, np.int64), counts, rates)
