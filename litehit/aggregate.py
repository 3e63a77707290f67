"""The sum of many hit curves, exact at every capacity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from litehit.curves import FlatCurves, Int64Array
from litehit.errors import StateError


class AggregateCurve:
    """Total hit blocks as a function of the capacity in blocks, of one block size and one charge.

    A segment (start, run) adds one hit for each block of capacity from `start` to `start + run - 1` (SPEC section 5),
    so the sum is piecewise linear with integer breakpoints. It is kept as the sorted starts of its pieces, the slope on
    each and the hits before each: 24 bytes a piece, however many curves were added.

    Added curves gather in a buffer that is folded in when it outgrows the breakpoints, so that adding costs a few sorts
    of each segment in all. A read folds the buffer in; reads after it change nothing, so threads may share an aggregate
    that is read once and then no longer added to. Else it is not safe for use by two threads at once.
    """

    def __init__(self) -> None:
        # Piece i runs from capacity _first[i] to _first[i + 1] - 1; each block of capacity there adds _slope[i] hits.
        self._first = np.empty(0, np.int64)
        self._slope = np.empty(0, np.int64)
        self._hits_before = np.empty(0, np.int64)
        self._pending: list[tuple[Int64Array, Int64Array]] = []
        self._pending_size = 0

    def add(self, curves: FlatCurves) -> None:
        """Add R curves of S segments in all."""
        if len(curves.starts):
            ends = curves.starts + curves.runs
            one = np.ones(len(ends), np.int64)
            self._push(np.concatenate([curves.starts, ends]), np.concatenate([one, -one]))

    def merge(self, other: AggregateCurve) -> None:
        """Add every curve that was added to another aggregate, which stays as it is."""
        other._fold()
        if len(other._first):
            self._push(other._first, np.diff(other._slope, prepend=0))

    def copy(self) -> AggregateCurve:
        """An independent aggregate of the same curves, made at once."""
        twin = AggregateCurve()
        # Arrays are replaced and never written into, so they can be shared.
        twin._first, twin._slope, twin._hits_before = self._first, self._slope, self._hits_before
        twin._pending, twin._pending_size = self._pending.copy(), self._pending_size
        return twin

    def state(self) -> dict[str, Int64Array]:
        """All of it as plain arrays of P pieces, which are not to be written into.

        `capacities` int64[P], ascending: the first capacity of each piece, in blocks; `slopes` int64[P]: hit blocks
        that each block of capacity adds there. The last slope is 0.
        """
        self._fold()
        return {"capacities": self._first, "slopes": self._slope}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> AggregateCurve:
        """The aggregate whose `state()` this is; the arrays are copied, for they may be parts of a large file.

        Raises:
            StateError: an array is missing, has another type or length, or is none that `state()` gives.
        """
        for name in ("capacities", "slopes"):
            if name not in state:
                raise StateError(f"{name} is missing")
            if state[name].dtype != np.int64 or state[name].ndim != 1:
                raise StateError(f"{name} is {state[name].ndim}-d {state[name].dtype}, not 1-d int64")
        first, slope = state["capacities"], state["slopes"]
        if len(first) != len(slope):
            raise StateError(f"slopes has {len(slope)} elements for {len(first)} capacities")
        if len(first):
            if first[0] < 1 or np.any(first[1:] <= first[:-1]):
                raise StateError("capacities do not ascend from at least 1")
            if np.any(slope < 0) or slope[-1] != 0 or np.any(np.diff(slope, prepend=0) == 0):
                raise StateError("slopes are negative, do not change from piece to piece, or do not end with 0")
            if np.dot(slope[:-1].astype(np.float64), np.diff(first).astype(np.float64)) >= _LAST:
                raise StateError("slopes and capacities add up to more hits than there can be")
        restored = cls()
        restored._set(first.copy(), slope.copy())
        return restored

    @classmethod
    def from_breakpoints(cls, capacities: Int64Array, hits: Int64Array) -> AggregateCurve:
        """The aggregate whose `breakpoints()` these are, int64[B] each; they are trusted."""
        made = cls()
        made._set(capacities + 1, np.append(np.diff(hits) // np.diff(capacities), np.zeros(len(hits[:1]), np.int64)))
        return made

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """Hit blocks at K capacities in blocks (negative: infinite): int64[K] for int64[K].

        Each is the sum of `project_blocks` over the curves.
        """
        self._fold()
        if not len(self._first):
            return np.zeros(len(capacity_blocks), np.int64)
        capacities = np.where(capacity_blocks < 0, _LAST, capacity_blocks)
        piece = np.searchsorted(self._first, capacities, side="right") - 1
        slope = self._slope[piece]
        # The last piece is flat, and -1, before the first, takes the last's slope: past both lies no block to count.
        blocks = np.where(slope != 0, capacities - self._first[piece] + 1, 0)
        return np.where(piece >= 0, self._hits_before[piece] + slope * blocks, 0)

    def ceiling(self) -> int:
        """Hit blocks at infinite capacity."""
        self._fold()
        return int(self._hits_before[-1]) if len(self._hits_before) else 0

    def smallest_capacity(self, hit_blocks: int) -> int | None:
        """The smallest capacity in blocks whose hits reach `hit_blocks`; None where even the ceiling does not."""
        if hit_blocks <= 0:
            return 0
        if hit_blocks > self.ceiling():
            return None
        # The piece before the first that starts with enough hits; its slope is positive, for hits grow across it.
        piece = int(np.searchsorted(self._hits_before, hit_blocks, side="left")) - 1
        missing = hit_blocks - int(self._hits_before[piece])
        return int(self._first[piece]) + -(-missing // int(self._slope[piece])) - 1

    def breakpoints(self) -> tuple[Int64Array, Int64Array]:
        """Capacities, ascending, between which hits grow linearly, and the hits there: int64[B] each, in blocks.

        The first capacity is the largest without a hit, the last the smallest that reaches the ceiling; an aggregate
        without a hit has none.
        """
        self._fold()
        return self._first - 1, self._hits_before

    def _push(self, capacities: Int64Array, slope_changes: Int64Array) -> None:
        self._pending.append((capacities, slope_changes))
        self._pending_size += len(capacities)
        if self._pending_size > max(_FOLD_AT, len(self._first)):
            self._fold()

    def _fold(self) -> None:
        """Bring the buffer into the sorted pieces."""
        if not self._pending:
            return
        capacities = np.concatenate([self._first, *(part[0] for part in self._pending)])
        changes = np.concatenate([np.diff(self._slope, prepend=0), *(part[1] for part in self._pending)])
        # The first part is sorted already, which a stable sort (a merge of runs) makes use of.
        order = np.argsort(capacities, kind="stable")
        capacities, changes = capacities[order], changes[order]
        group = np.flatnonzero(np.diff(capacities, prepend=capacities[0] - 1))
        first, summed = capacities[group], np.add.reduceat(changes, group)
        kept = summed != 0
        self._set(first[kept], np.cumsum(summed[kept]))
        self._pending, self._pending_size = [], 0

    def _set(self, first: Int64Array, slope: Int64Array) -> None:
        hits_before = np.zeros(len(first), np.int64)
        np.cumsum(slope[:-1] * np.diff(first), out=hits_before[1:])
        self._first, self._slope, self._hits_before = first, slope, hits_before


_FOLD_AT = 1 << 16
_LAST = 2**63 - 1
