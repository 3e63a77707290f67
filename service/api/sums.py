"""Sums over facts that can be shared between threads: nothing here changes once it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from litehit.aggregate import AggregateCurve
from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch

_GROWTH = 4
"""A layer stands for more than this many times the facts of the next: few layers to ask, few merges a fact."""


class GroupKey(NamedTuple):
    """What facts must share for their curves to be added up in blocks."""

    instance_id: str
    block_size_tokens: int
    block_bytes: int


class HitSums(Protocol):
    """Facts of one group, summed; never changes."""

    @property
    def requests(self) -> int:
        """Number of facts."""

    @property
    def input_tokens(self) -> int:
        """Sum of their `input_token_len`."""

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """Hit blocks at K capacities in blocks (negative: infinite): int64[K] for int64[K]."""

    def ceiling(self) -> int:
        """Hit blocks at infinite capacity."""

    def curve(self) -> AggregateCurve:
        """One exact curve of all of it, not to be added to."""


@dataclass(frozen=True, slots=True)
class _Layer:
    facts: int
    curve: AggregateCurve

    def __post_init__(self) -> None:
        # The first read folds the curve's buffer in; after it reads change nothing, and threads may share the curve.
        self.curve.ceiling()


@dataclass(frozen=True, slots=True)
class GroupSums:
    """The facts of one group, summed.

    Adding a few facts to many must not copy the many, so the curves are kept in layers, each of more than `_GROWTH`
    times the facts of the next. A fact is merged a logarithmic number of times, and a query asks as many layers.

    Attributes:
        requests: number of facts.
        input_tokens: sum of their `input_token_len`.
        layers: their curves, most facts first.
    """

    requests: int
    input_tokens: int
    layers: tuple[_Layer, ...]

    @classmethod
    def of(cls, input_token_lens: Int64Array, hit_curves: FlatCurves) -> GroupSums:
        """Sum R facts of one group: int64[R] tokens and R curves."""
        curve = AggregateCurve()
        curve.add(hit_curves)
        return cls(len(hit_curves), int(input_token_lens.sum()), (_Layer(len(hit_curves), curve),))

    def __add__(self, other: GroupSums) -> GroupSums:
        waiting = sorted((*self.layers, *other.layers), key=lambda layer: layer.facts)
        layers: list[_Layer] = []
        for layer in waiting:  # fewest facts first; the last of `layers` has the most so far
            if layers and layer.facts <= _GROWTH * layers[-1].facts:
                smaller = layers.pop()
                # Readers may hold both curves: merge into a copy.
                merged = layer.curve.copy()
                merged.merge(smaller.curve)
                layers.append(_Layer(layer.facts + smaller.facts, merged))
            else:
                layers.append(layer)
        return GroupSums(
            self.requests + other.requests, self.input_tokens + other.input_tokens, tuple(reversed(layers))
        )

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """See `HitSums.hits`."""
        hits = np.zeros(len(capacity_blocks), np.int64)
        for layer in self.layers:
            hits += layer.curve.hits(capacity_blocks)
        return hits

    def ceiling(self) -> int:
        """See `HitSums.ceiling`."""
        return sum(layer.curve.ceiling() for layer in self.layers)

    def curve(self) -> AggregateCurve:
        """See `HitSums.curve`."""
        largest, *others = (layer.curve for layer in self.layers)
        if not others:
            return largest
        merged = largest.copy()
        for curve in others:
            merged.merge(curve)
        merged.ceiling()  # folds, so that threads may share it
        return merged


Sums: TypeAlias = Mapping[GroupKey, GroupSums]
"""Sums by group; treated as immutable."""


def sums_of(facts: FactBatch) -> Sums:
    """Sum facts by group."""
    return {
        key: GroupSums.of(facts.input_token_lens[rows], facts.hit_curves.select(rows)) for key, rows in _groups(facts)
    }


def add_sums(sums: Sums, more: Sums) -> Sums:
    """Both together; groups that only one of them has are shared, not copied."""
    joined = dict(sums)
    for key, group in more.items():
        present = joined.get(key)
        joined[key] = group if present is None else present + group
    return joined


def _groups(facts: FactBatch) -> Iterator[tuple[GroupKey, Int64Array]]:
    """Each group's key and row indices."""
    if not len(facts):
        return
    codes = _codes(facts.instance_ids)
    for column in (facts.block_size_tokens, facts.block_bytes):
        if (column != column[0]).any():  # most often all are equal
            values, inverse = np.unique(column, return_inverse=True)
            codes = codes * len(values) + inverse
            _, codes = np.unique(codes, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        first = int(rows[0])
        key = GroupKey(facts.instance_ids[first], int(facts.block_size_tokens[first]), int(facts.block_bytes[first]))
        yield key, rows


def _codes(strings: Sequence[str]) -> Int64Array:
    """Equal numbers for equal strings: int64[R]."""
    indices = pa.array(strings, pa.string()).dictionary_encode().indices
    return np.asarray(indices.to_numpy(), np.int64)
