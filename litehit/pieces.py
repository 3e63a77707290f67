"""Pieces of an array, taken out of it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel


@kernel()
def gather(source: NDArray[Any], firsts: Int64Array, bounds: Int64Array, gathered: NDArray[Any]) -> None:
    """Copy R pieces without gaps, in their order.

    Args:
        source: holds them.
        firsts: int64[R], where each begins in it.
        bounds: int64[R + 1]; piece i is to be `gathered[bounds[i]:bounds[i + 1]]`.
        gathered: to be written; of the source's type.
    """
    for piece in range(len(firsts)):
        target = gathered[bounds[piece] : bounds[piece + 1]]
        own = source[firsts[piece] : firsts[piece] + len(target)]
        for i in range(len(target)):  # over parts that begin at 0: the compiler makes it a copy of whole vectors
            target[i] = own[i]
