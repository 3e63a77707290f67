"""A core's arrays at one moment, and the state that is made of them; the core itself goes on meanwhile."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from litehit import compaction, key_table
from litehit.batch_kernel import BLOCKS, CLOCK, END_EPOCH, Scalars
from litehit.curves import Int64Array
from litehit.mapped import MappedArray
from litehit.recency import Bitmap, Positions

State = dict[str, np.ndarray]


class FrozenCore:
    """A copy of what a core holds. Making it costs the time of a copy; `state` does the rest, in any thread."""

    def __init__(
        self,
        ttl: int,
        scalars: Scalars,
        keys: Int64Array,
        positions: Positions,
        epoch_times: Int64Array,
        epoch_positions: Int64Array,
        bitmap: Bitmap,
    ) -> None:
        self._ttl = ttl
        self._scalars = scalars.copy()
        self._keys = MappedArray.copy_of(keys).array
        self._positions = MappedArray.copy_of(positions).array
        self._epoch_times = epoch_times.copy()
        self._epoch_positions = epoch_positions.copy()
        self._bitmap = bitmap.copy()

    @cached_property
    def state(self) -> State:
        """See `LiteHit.state`."""
        compaction.renumber(
            self._scalars, self._keys, self._positions, self._epoch_times, self._epoch_positions, self._bitmap
        )
        blocks = int(self._scalars[BLOCKS])
        epochs = int(self._scalars[END_EPOCH])
        slots = np.empty(blocks, np.uint64)
        key_table.slots_of(self._keys, blocks, slots)
        slots.sort()
        return {
            "keys": self._keys[:blocks],
            "positions": self._positions[:blocks],
            "slots": slots,
            "epoch_times": self._epoch_times[:epochs],
            "epoch_positions": self._epoch_positions[:epochs],
            "clock": self._scalars[CLOCK : CLOCK + 1],
            "ttl": np.array([self._ttl], np.int64),
        }
