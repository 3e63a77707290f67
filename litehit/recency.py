"""The recency order: which positions are live, and how many live ones are newer than a given one.

Every block holds one position; a later access takes a higher one. Live positions are bits of a bitmap; a Fenwick tree
counts them by groups of 512 (one cache line of bitmap), so a count reads about log2(groups) tree nodes and one line.
At ten million blocks the tree is a few hundred kilobytes and stays in the L2 cache.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.intrinsics import popcount
from litehit.jit import kernel

Bitmap: TypeAlias = NDArray[np.uint64]
Fenwick: TypeAlias = NDArray[np.int32]
Positions: TypeAlias = NDArray[np.int32]
Integer: TypeAlias = int | np.int64  # a scalar of a kernel

GROUP_BITS = 512
_GROUP_SHIFT = 9
_WORDS_PER_GROUP = 8
_ALL_ONES = 0xFFFF_FFFF_FFFF_FFFF


def group_count(positions: int) -> int:
    """Groups that hold so many positions."""
    return -(-positions // GROUP_BITS)


def allocate(groups: int) -> tuple[Bitmap, Fenwick]:
    """An empty recency order of `groups * 512` positions: bitmap uint64[8 * groups], tree int32[groups + 1]."""
    return np.zeros(groups * _WORDS_PER_GROUP, np.uint64), np.zeros(groups + 1, np.int32)


@kernel(inline="always")
def _low_mask(bit: Integer) -> Any:
    """A word whose bits 0..bit are set, bit in 0..63."""
    return np.uint64(_ALL_ONES) >> np.uint64(63 - bit)


@kernel()
def count_through(bitmap: Bitmap, fenwick: Fenwick, position: Integer) -> Integer:
    """Live positions in 0..position."""
    group = position >> _GROUP_SHIFT
    count = np.int64(0)
    node = group
    while node > 0:
        count += fenwick[node]
        node &= node - 1
    word = position >> 6
    for i in range(group * _WORDS_PER_GROUP, word):
        count += np.int64(popcount(bitmap[i]))
    return count + np.int64(popcount(bitmap[word] & _low_mask(position & 63)))


@kernel(inline="always")
def _add(fenwick: Fenwick, group: Integer, delta: Integer) -> None:
    node = group + 1
    while node < len(fenwick):
        fenwick[node] += delta
        node += node & -node


@kernel(inline="always")
def _range_mask(word: Integer, low: Integer, high: Integer) -> Any:
    """Bits of word number `word` that lie in positions low..high."""
    mask = np.uint64(_ALL_ONES)
    if low > word << 6:
        mask <<= np.uint64(low & 63)
    if high < (word << 6) + 63:
        mask &= _low_mask(high & 63)
    return mask


@kernel()
def set_range(bitmap: Bitmap, fenwick: Fenwick, low: Integer, high: Integer) -> None:
    """Make the positions low..high live; none of them is."""
    for word in range(low >> 6, (high >> 6) + 1):
        bitmap[word] |= _range_mask(word, low, high)
    for group in range(low >> _GROUP_SHIFT, (high >> _GROUP_SHIFT) + 1):
        first = max(low, group << _GROUP_SHIFT)
        last = min(high, (group << _GROUP_SHIFT) + GROUP_BITS - 1)
        _add(fenwick, group, last - first + 1)


@kernel()
def clear_range(bitmap: Bitmap, fenwick: Fenwick, low: Integer, high: Integer) -> None:
    """Make the positions low..high dead; all of them are live."""
    for word in range(low >> 6, (high >> 6) + 1):
        bitmap[word] &= ~_range_mask(word, low, high)
    for group in range(low >> _GROUP_SHIFT, (high >> _GROUP_SHIFT) + 1):
        first = max(low, group << _GROUP_SHIFT)
        last = min(high, (group << _GROUP_SHIFT) + GROUP_BITS - 1)
        _add(fenwick, group, first - last - 1)


@kernel()
def fill(bitmap: Bitmap, fenwick: Fenwick, live: Integer) -> None:
    """Make exactly the positions 0..live-1 live, whatever was live before; linear in the size."""
    bitmap[:] = 0
    for word in range(live >> 6):
        bitmap[word] = np.uint64(_ALL_ONES)
    if live & 63:
        bitmap[live >> 6] = _low_mask((live & 63) - 1)
    fenwick[0] = 0
    for node in range(1, len(fenwick)):
        # A node covers the `node & -node` groups that end with group node - 1.
        first = min(live, (node - (node & -node)) << _GROUP_SHIFT)
        fenwick[node] = min(live, node << _GROUP_SHIFT) - first


@kernel(allocates=True)
def live_before_words(bitmap: Bitmap) -> Positions:
    """int32[words]: live positions before each word; with it a rank costs one popcount."""
    before = np.empty(len(bitmap), np.int32)
    count = np.int64(0)
    for word in range(len(bitmap)):
        before[word] = count
        count += np.int64(popcount(bitmap[word]))
    return before


@kernel(inline="always")
def rank(bitmap: Bitmap, before: Positions, position: Integer) -> Integer:
    """Live positions in 0..position-1; `position` may be one past the end."""
    word = position >> 6
    if word == len(bitmap):
        return np.int64(before[word - 1]) + np.int64(popcount(bitmap[word - 1]))
    below = bitmap[word] & ~(np.uint64(_ALL_ONES) << np.uint64(position & 63))
    return np.int64(before[word]) + np.int64(popcount(below))
