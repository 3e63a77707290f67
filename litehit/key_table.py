"""The table from block key to block id: asked at forks and for new blocks, never written on a hit.

Open addressing with linear probing. A slot is an int64: the upper half of the key's hash, below it the id plus 1; an
empty slot is 0. A key's home is its hash's top bits, so the half hash in a slot spares most looks at `key_of`, and a
larger table is filled in one sequential pass, without the keys.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit import intrinsics
from litehit.jit import kernel
from litehit.mapped import MappedArray
from litehit.recency import Integer

Table: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.int64]
Slots: TypeAlias = NDArray[np.uint64]

_EMPTY = 0
_TAG_BITS = 0xFFFF_FFFF_0000_0000
_ID_BITS = 0x0000_0000_FFFF_FFFF
_MAX_LOAD = 0.8
_CHECKED_SLOT = 1024
_AHEAD = 16  # blocks between the prefetch of a slot and its use


def slots_for(blocks: int) -> int:
    """Slots (a power of two) of a table for so many blocks."""
    return 1 << max(10, int(np.ceil(np.log2(max(1, blocks) / _MAX_LOAD))))


def blocks_in(slots: int) -> int:
    """Blocks that a table of so many slots may hold."""
    return int(slots * _MAX_LOAD)


def allocate(slots: int) -> Table:
    """An empty table: int64[slots]."""
    return MappedArray(np.int64, slots).array


@kernel(inline="always")
def hash_key(key: Integer) -> Any:
    """Mix a key to 64 well spread bits (the finaliser of MurmurHash3); small consecutive keys are common."""
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@kernel(inline="always")
def _home(table: Table, h: Any) -> Any:
    """Where the probing for a hash begins; `h` may lack its lower half."""
    # Of a power of two 2**k, popcount(2**k - 1) = k.
    return h >> (np.uint64(64) - intrinsics.popcount(np.uint64(len(table) - 1)))


@kernel(inline="always")
def prefetch(table: Table, key: Integer) -> None:
    """Start loading the slots where a key will be looked up."""
    intrinsics.prefetch(table, np.int64(_home(table, hash_key(key))))


@kernel()
def find(table: Table, key_of: Keys, key: Integer) -> Integer:
    """Id of a key, or -1."""
    h = hash_key(key)
    at = _home(table, h)
    while True:
        slot = table[at]
        if slot == _EMPTY:
            return -1
        if (np.uint64(slot) ^ h) & np.uint64(_TAG_BITS) == 0:
            block = np.int64(np.uint64(slot) & np.uint64(_ID_BITS)) - 1
            if key_of[block] == key:
                return block
        at = (at + np.uint64(1)) & np.uint64(len(table) - 1)


@kernel()
def find_or_insert(table: Table, key_of: Keys, key: Integer, new_block: Integer) -> Integer:
    """Id of a key; an unknown key gets the id `new_block`, and `key_of` its entry."""
    h = hash_key(key)
    at = _home(table, h)
    while True:
        slot = table[at]
        if slot == _EMPTY:
            table[at] = np.int64((h & np.uint64(_TAG_BITS)) | np.uint64(new_block + 1))
            key_of[new_block] = key
            return new_block
        if (np.uint64(slot) ^ h) & np.uint64(_TAG_BITS) == 0:
            block = np.int64(np.uint64(slot) & np.uint64(_ID_BITS)) - 1
            if key_of[block] == key:
                return block
        at = (at + np.uint64(1)) & np.uint64(len(table) - 1)


@kernel()
def insert_all(table: Table, key_of: Keys, first: Integer, count: Integer) -> None:
    """Put the blocks first..count-1 into a table, which holds none of their keys; they are distinct."""
    for block in range(first, count):
        if block + _AHEAD < count:
            prefetch(table, key_of[block + _AHEAD])
        find_or_insert(table, key_of, key_of[block], block)


@kernel()
def move_all(source: Table, target: Table) -> None:
    """Fill an empty, larger table with the blocks of another."""
    for i in range(len(source)):
        slot = source[i]
        if slot != _EMPTY:
            at = _home(target, np.uint64(slot))
            while target[at] != _EMPTY:
                at = (at + np.uint64(1)) & np.uint64(len(target) - 1)
            target[at] = slot


@kernel()
def slots_of(key_of: Keys, count: Integer, slots: Slots) -> None:
    """Write what `fill_sorted` takes, before it is sorted: the slots of the blocks 0..count-1, one each."""
    for block in range(count):
        slots[block] = (hash_key(key_of[block]) & np.uint64(_TAG_BITS)) | np.uint64(block + 1)


@kernel()
def _stands_before(slots: Slots, key_of: Keys, i: Integer) -> bool:
    """Whether a slot before the i-th of the same half hash is of the same key."""
    key = key_of[np.int64(slots[i] & np.uint64(_ID_BITS)) - 1]
    before = i - 1
    while before >= 0 and (slots[before] ^ slots[i]) & np.uint64(_TAG_BITS) == 0:
        if key_of[np.int64(slots[before] & np.uint64(_ID_BITS)) - 1] == key:
            return True
        before -= 1
    return False


@kernel()
def fill_sorted(table: Table, key_of: Keys, slots: Slots) -> Integer:
    """Fill an empty table with slots in ascending order: one sequential pass, where `insert_all` jumps about.

    Returns -1, or the index of a slot that does not ascend, names no block, or names one whose key stands before. That
    slots hold their keys' hashes is checked of some of them.
    """
    size = np.uint64(len(table))
    blocks = np.uint64(len(key_of))
    shift = np.uint64(64) - intrinsics.popcount(size - np.uint64(1))
    following = np.uint64(0)  # where the probing of the next slot may end at the earliest
    previous = np.uint64(0)
    for i in range(len(slots)):
        slot = slots[i]
        block = (slot & np.uint64(_ID_BITS)) - np.uint64(1)
        if slot <= previous or block >= blocks:
            return i
        if i % _CHECKED_SLOT == 0 and (hash_key(key_of[block]) ^ slot) & np.uint64(_TAG_BITS) != 0:
            return i
        if (slot ^ previous) & np.uint64(_TAG_BITS) == 0 and _stands_before(slots, key_of, i):
            return i
        previous = slot
        at = max(slot >> shift, following)
        following = at + np.uint64(1)
        if at >= size:
            following = size
            # Past the end probing goes on from the start, as far as there are homes taken.
            at = np.uint64(0)
            while table[at] != _EMPTY:
                at += np.uint64(1)
        table[at] = np.int64(slot)
    return -1
