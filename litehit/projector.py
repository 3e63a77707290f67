"""The one place where a capacity meets a hit curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit.curves import FlatCurves, Int64Array
from litehit.errors import CapacityError

INFINITE = -1
"""The capacity, in blocks or bytes, that stands for an infinite cache; so does any negative number."""

_BYTES_PER_GB = 1024**3  # capacities in GB are binary
_MAX_BLOCKS = 2**63 - 1  # no curve reaches so far: larger capacities give the same hits, and would overflow int64


class HitCurveProjector:
    """Hit blocks of a curve at a capacity (SPEC section 5).

    A segment (start, run) gives `min(run, C - start + 1)` hits at a capacity of C >= start blocks, none below.
    Bytes become blocks here and nowhere else, by one floor division.
    """

    @staticmethod
    def capacity_bytes(capacity_gb: float) -> int:
        """Whole bytes of a capacity in binary GB, floored; negative means infinite and gives `INFINITE`.

        Raises:
            CapacityError: the capacity is not a finite number.
        """
        if not math.isfinite(capacity_gb):
            raise CapacityError(f"capacity_gb {capacity_gb} is not a finite number; ask for the ceiling with -1")
        numerator, denominator = float(capacity_gb).as_integer_ratio()  # a float product overflows beyond 1e299 GB
        return INFINITE if capacity_gb < 0 else numerator * _BYTES_PER_GB // denominator

    @staticmethod
    def capacity_blocks(capacity_bytes: int, block_bytes: int) -> int:
        """Whole blocks of `block_bytes` bytes that fit; negative bytes mean infinite and give `INFINITE`."""
        return INFINITE if capacity_bytes < 0 else capacity_bytes // block_bytes

    @staticmethod
    def capacities_blocks(capacities_bytes: Sequence[int] | NDArray[Any], block_bytes: int | Int64Array) -> Int64Array:
        """`capacity_blocks` of K capacities in bytes: int64[K]; larger than any curve is cut to what gives the same.

        A column of charges, int64[N, 1], gives a row for each: int64[N, K].
        """
        try:
            exact = np.asarray(capacities_bytes, np.int64)
        except OverflowError:
            exact = np.asarray(capacities_bytes, object)
        blocks: Int64Array = np.maximum(exact // block_bytes, INFINITE)  # less than no bytes are no block more
        return blocks if blocks.dtype == np.int64 else np.minimum(blocks, _MAX_BLOCKS).astype(np.int64)

    @staticmethod
    def capacity_gb(capacity_blocks: int, block_bytes: int) -> float:
        """Binary GB that hold so many blocks: the inverse of the two above."""
        return HitCurveProjector.gb_of_bytes(capacity_blocks * block_bytes)

    @staticmethod
    def gb_of_bytes(capacity_bytes: int) -> float:
        """The smallest number of binary GB whose `capacity_bytes` hold so many bytes; exact up to 2**53 bytes."""
        gb = capacity_bytes / _BYTES_PER_GB
        if capacity_bytes <= 2**53:  # no rounding
            return gb
        return gb if HitCurveProjector.capacity_bytes(gb) >= capacity_bytes else math.nextafter(gb, math.inf)

    @staticmethod
    def gb_of_many_bytes(capacities_bytes: NDArray[Any]) -> NDArray[np.float64]:
        """`gb_of_bytes` of K capacities, integers[K] that may be Python's: float64[K]."""
        if len(capacities_bytes) and capacities_bytes.max() > 2**53:
            return np.array([HitCurveProjector.gb_of_bytes(int(one)) for one in capacities_bytes])
        return capacities_bytes.astype(np.float64) / _BYTES_PER_GB

    @staticmethod
    def project_blocks(curve: Sequence[tuple[int, int]], capacity_blocks: int) -> int:
        """Hit blocks at a capacity in blocks (negative: infinite)."""
        if capacity_blocks < 0:
            return HitCurveProjector.project_infinite(curve)
        hits = 0
        for start, run in curve:
            if start > capacity_blocks:
                break
            hits += min(run, capacity_blocks - start + 1)
        return hits

    @staticmethod
    def project_bytes(curve: Sequence[tuple[int, int]], capacity_bytes: int, block_bytes: int) -> int:
        """Hit blocks at a capacity in bytes (negative: infinite)."""
        return HitCurveProjector.project_blocks(curve, HitCurveProjector.capacity_blocks(capacity_bytes, block_bytes))

    @staticmethod
    def project_infinite(curve: Sequence[tuple[int, int]]) -> int:
        """Hit blocks of a cache that never evicts: only cold blocks miss."""
        return sum(run for _, run in curve)

    @staticmethod
    def segment_hits(starts: Int64Array, runs: Int64Array, capacity_blocks: int) -> Int64Array:
        """`project_blocks` of each segment by itself: int64[S] for S segments."""
        if capacity_blocks < 0:
            return runs
        return np.clip(min(capacity_blocks, _MAX_BLOCKS) - starts + 1, 0, runs)

    @staticmethod
    def project_blocks_batch(curves: FlatCurves, capacity_blocks: int) -> Int64Array:
        """`project_blocks` of every curve: int64[R] hit blocks for R curves."""
        hits = np.zeros(len(curves.starts) + 1, np.int64)
        np.cumsum(HitCurveProjector.segment_hits(curves.starts, curves.runs, capacity_blocks), out=hits[1:])
        return hits[curves.offsets[1:]] - hits[curves.offsets[:-1]]

    @staticmethod
    def project_bytes_batch(curves: FlatCurves, capacity_bytes: int, block_bytes: int) -> Int64Array:
        """`project_bytes` of every curve, all of one `block_bytes`: int64[R] hit blocks for R curves."""
        return HitCurveProjector.project_blocks_batch(
            curves, HitCurveProjector.capacity_blocks(capacity_bytes, block_bytes)
        )

    @staticmethod
    def project_infinite_batch(curves: FlatCurves) -> Int64Array:
        """`project_infinite` of every curve: int64[R] hit blocks for R curves."""
        return HitCurveProjector.project_blocks_batch(curves, INFINITE)
