"""Many hit curves in flat arrays: the form in which curves travel in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from schemas.fact import HitCurve

Int64Array: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FlatCurves:
    """R hit curves of S segments in all.

    Attributes:
        starts: int64[S], `start_required_blocks` of each segment, in blocks.
        runs: int64[S], `run_length` of each segment, in blocks.
        offsets: int64[R + 1]; curve i is the segments `offsets[i]:offsets[i + 1]`.
    """

    starts: Int64Array
    runs: Int64Array
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> HitCurve:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"curve {index} of {count}")
        index %= count
        low, high = int(self.offsets[index]), int(self.offsets[index + 1])
        return tuple(zip(self.starts[low:high].tolist(), self.runs[low:high].tolist(), strict=True))

    def __iter__(self) -> Iterator[HitCurve]:
        segments = list(zip(self.starts.tolist(), self.runs.tolist(), strict=True))
        bounds = self.offsets.tolist()
        for low, high in pairwise(bounds):
            yield tuple(segments[low:high])

    @classmethod
    def from_curves(cls, curves: Iterable[Sequence[tuple[int, int]]]) -> FlatCurves:
        """Flatten curves given as sequences of (start, run)."""
        listed = list(curves)
        offsets = np.zeros(len(listed) + 1, np.int64)
        np.cumsum([len(curve) for curve in listed], out=offsets[1:])
        pairs = np.fromiter(
            chain.from_iterable(chain.from_iterable(listed)), dtype=np.int64, count=2 * int(offsets[-1])
        ).reshape(-1, 2)
        return cls(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), offsets)

    @classmethod
    def concatenate(cls, parts: Sequence[FlatCurves]) -> FlatCurves:
        """Append batches of curves in the order given."""
        if not parts:
            return cls.from_curves(())
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(
            np.concatenate([part.starts for part in parts]), np.concatenate([part.runs for part in parts]), offsets
        )

    def select(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> FlatCurves:
        """The curves of the given rows (indices or a mask), in that order."""
        lengths = np.diff(self.offsets)[rows]
        first = self.offsets[:-1][rows]
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Segment s of selected curve r lies at first[r] + (s - offsets[r]).
        index = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], lengths)
        return FlatCurves(self.starts[index], self.runs[index], offsets)
