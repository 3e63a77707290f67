"""The design that everyone writes: a hash map to the last access and a Fenwick tree over accesses, a query a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litehit import key_table
from litehit.curves import FlatCurves, Int64Array
from litehit.jit import kernel


@dataclass(frozen=True, slots=True)
class Textbook:
    """Exact hit curves of a whole trace; the trace's length must be known, for the tree has a node for each access."""

    accesses: int
    unique_blocks: int

    def process(self, keys: Int64Array, offsets: Int64Array) -> FlatCurves:
        """The curves of R requests from a cold start: N keys, `offsets` int64[R + 1]."""
        table = key_table.allocate(key_table.slots_for(self.unique_blocks))
        key_of = np.empty(self.unique_blocks, np.int64)
        last_access = np.empty(self.unique_blocks, np.int64)
        fenwick = np.zeros(self.accesses + 1, np.int32)
        return FlatCurves(*_process(keys, offsets, table, key_of, last_access, fenwick))


@kernel(allocates=True)
def _process(
    keys: Int64Array,
    offsets: Int64Array,
    table: Int64Array,
    key_of: Int64Array,
    last_access: Int64Array,
    fenwick: NDArray[np.int32],
) -> tuple[Int64Array, Int64Array, Int64Array]:
    blocks = 0
    clock = 0
    starts = np.empty(1024, np.int64)
    runs = np.empty(1024, np.int64)
    segment_offsets = np.zeros(len(offsets), np.int64)
    segments = 0
    for request in range(len(offsets) - 1):
        low, high = offsets[request], offsets[request + 1]
        if segments + high - low > len(starts):
            starts = np.append(starts, np.empty(len(starts) + high - low, np.int64))
            runs = np.append(runs, np.empty(len(runs) + high - low, np.int64))
        first_segment = segments
        last = 0
        highest = 0
        for i in range(low, high):
            block = key_table.find(table, key_of, keys[i])
            if block < 0:
                break
            newer = blocks
            node = last_access[block]
            while node > 0:
                newer -= fenwick[node]
                node &= node - 1
            highest = max(highest, newer + 1)
            threshold = max(highest, last + 1)
            if threshold == last + 1 and segments > first_segment:
                runs[segments - 1] += 1
            else:
                starts[segments] = threshold
                runs[segments] = 1
                segments += 1
            last = threshold
        segment_offsets[request + 1] = segments
        # Contract input only: no key repeats inside a request.
        for i in range(high - 1, low - 1, -1):
            block = key_table.find_or_insert(table, key_of, keys[i], blocks)
            if block == blocks:
                blocks += 1
            else:
                node = last_access[block]
                while node < len(fenwick):
                    fenwick[node] -= 1
                    node += node & -node
            clock += 1
            last_access[block] = clock
            node = clock
            while node < len(fenwick):
                fenwick[node] += 1
                node += node & -node
    return starts[:segments].copy(), runs[:segments].copy(), segment_offsets
