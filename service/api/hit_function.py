"""Hits as a function of the capacity, over groups of any block sizes and charges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit import curve_kernels, point_kernels
from litehit.curves import Int64Array
from litehit.jit import interpreted
from litehit.projector import HitCurveProjector
from service.api.groups import GroupKey
from service.api.selection import HitSums

Integers: TypeAlias = NDArray[Any]
"""int64, or Python's integers where 64 bits may not do."""


class Hits(NamedTuple):
    """Hits at K capacities.

    Attributes:
        blocks, tokens: integers[K].
    """

    blocks: Integers
    tokens: Integers


@dataclass(frozen=True, eq=False)
class Part:
    """Groups of one block size and one charge.

    Attributes:
        block_size_tokens: tokens of a block.
        block_bytes: bytes charged to a block.
        sums: the groups.
    """

    block_size_tokens: int
    block_bytes: int
    sums: tuple[HitSums, ...]

    @cached_property
    def curves(self) -> Sequence[tuple[Int64Array, Int64Array]]:
        """The breakpoints of each group that has hits, in blocks."""
        curves = [sums.curve().breakpoints() for sums in self.sums]
        return [(bends, hits) for bends, hits in curves if len(bends)]

    @cached_property
    def flat(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The same as `curve_kernels` takes them: offsets, capacities, hits."""
        offsets = np.cumsum([0, *(len(bends) for bends, _ in self.curves)])
        if len(self.curves) == 1:
            return offsets, *self.curves[0]  # which may be large, and so is not copied
        none = np.empty(0, np.int64)
        capacities, hits = (np.concatenate([none, *(curve[column] for curve in self.curves)]) for column in (0, 1))
        return offsets, capacities, hits

    def hits(self, capacity_blocks: Int64Array) -> Int64Array:
        """Hit blocks at K capacities in blocks (negative: infinite): int64[K] for int64[K]."""
        found = np.zeros((1, len(capacity_blocks)), np.int64)
        rows = np.zeros(len(self.curves), np.int64)
        curve_kernels.add_hits(rows, *self.flat, capacity_blocks[np.newaxis], found)
        hits: Int64Array = found[0]
        return hits


class HitFunction:
    """Hits of all facts of some groups, each instance with the whole capacity to itself.

    It grows with the capacity, in steps at multiples of `unit_bytes`.

    Args:
        groups: the facts, summed; a key may come up several times.
        block_bytes: bytes charged to every block instead of what each group is charged; None = each group's own.

    Attributes:
        parts: the groups by block size and charge.
        requests: number of facts.
        input_tokens: sum of their `input_token_len`.
        ceiling_blocks, ceiling_tokens: hits at infinite capacity.
        unit_bytes: the greatest common divisor of the charges: the charge where there is one, 1 where there is none.
    """

    def __init__(self, groups: Iterable[tuple[GroupKey, HitSums]], block_bytes: int | None = None) -> None:
        parts: dict[tuple[int, int], list[HitSums]] = {}
        for key, sums in groups:
            parts.setdefault((key.block_size_tokens, block_bytes or key.block_bytes), []).append(sums)
        self.parts = tuple(Part(*charge, tuple(sums)) for charge, sums in sorted(parts.items()))
        self.requests = self.input_tokens = self.ceiling_blocks = self.ceiling_tokens = 0
        for part in self.parts:
            for sums in part.sums:
                ceiling = sums.ceiling()
                self.requests += sums.requests
                self.input_tokens += sums.input_tokens
                self.ceiling_blocks += ceiling
                self.ceiling_tokens += ceiling * part.block_size_tokens
        self.unit_bytes = gcd(*(part.block_bytes for part in self.parts)) or 1

    @property
    def block_bytes(self) -> int | None:
        """The charge of a block; None where there are several or none."""
        charges = {part.block_bytes for part in self.parts}
        return charges.pop() if len(charges) == 1 else None

    @property
    def block_size_tokens(self) -> int | None:
        """Tokens of a block; None where there are several sizes or none."""
        sizes = {part.block_size_tokens for part in self.parts}
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def ceiling_rate(self) -> float:
        """The hit rate at infinite capacity."""
        return self.rate(self.ceiling_tokens)

    def rate(self, hit_tokens: int) -> float:
        """Tokens hit of all tokens; 0.0 without tokens."""
        return hit_tokens / self.input_tokens if self.input_tokens else 0.0

    def rates(self, hit_tokens: Integers) -> NDArray[np.float64]:
        """`rate` of K numbers: float64[K]."""
        if self.input_tokens <= 2**53:  # no number is rounded before the division
            return hit_tokens.astype(np.float64) / max(self.input_tokens, 1)
        return np.array([self.rate(tokens) for tokens in hit_tokens.tolist()])

    def share(self, hit_tokens: int) -> float:
        """Tokens hit of those hit at infinite capacity; 1.0 where that hits none."""
        return hit_tokens / self.ceiling_tokens if self.ceiling_tokens else 1.0

    def hits(self, capacities: Sequence[int] | Integers, unit_bytes: int = 1) -> Hits:
        """Hits at K capacities (negative: infinite), in units of so many bytes, which divide every charge."""
        dtype = integers_up_to(self.ceiling_tokens)
        blocks, tokens = np.zeros((2, len(capacities)), dtype)
        for part in self.parts:
            capacity_blocks = HitCurveProjector.capacities_blocks(capacities, part.block_bytes // unit_bytes)
            hits = part.hits(capacity_blocks).astype(dtype, copy=False)
            blocks += hits
            hits *= part.block_size_tokens
            tokens += hits
        return Hits(blocks, tokens)

    def hits_of(self, hit_blocks: Int64Array, block_size_tokens: int) -> Hits:
        """Hits that are blocks of one size: int64[K]."""
        blocks: Integers = hit_blocks.astype(integers_up_to(self.ceiling_tokens), copy=False)
        return Hits(blocks, blocks * block_size_tokens)

    def tokens_for_rate(self, hit_rate: Fraction) -> int:
        """The fewest hit tokens that give a hit rate: one where there are no tokens, and so no rate but 0."""
        return ceil(hit_rate * self.input_tokens) if self.input_tokens else ceil(hit_rate)

    def tokens_for_share(self, share: Fraction) -> int:
        """The fewest hit tokens that are a share of the ceiling."""
        return ceil(share * self.ceiling_tokens)

    def smallest(self, hit_tokens: Sequence[int]) -> list[int | None]:
        """The smallest capacity in bytes that gives so many hit tokens, for K numbers; None above the ceiling."""
        # In units, for a capacity between two multiples of it gives no more than the lower one.
        curves = [
            (bends, hits, part.block_bytes // self.unit_bytes, part.block_size_tokens)
            for part in self.parts
            for bends, hits in part.curves
        ]
        enough = max((int(bends[-1]) * charge for bends, _, charge, _ in curves), default=0)
        dtype = integers_up_to(max(enough, self.ceiling_tokens))
        reachable = np.array([wanted for wanted in hit_tokens if wanted <= self.ceiling_tokens], dtype)
        found = np.empty(len(reachable), dtype)
        offsets = np.cumsum([0, *(len(bends) for bends, *_ in curves)])
        none = np.empty(0, dtype)
        capacities, hits = (
            np.concatenate([none, *(curve[column] for curve in curves)]).astype(dtype, copy=False) for column in (0, 1)
        )
        charges, sizes = (np.array([curve[column] for curve in curves], dtype) for column in (2, 3))
        search = point_kernels.smallest_capacities
        if dtype is object:
            search = interpreted(search)
        search(offsets, capacities, hits, charges, sizes, reachable, enough, found)
        units = iter(found.tolist())
        return [next(units) * self.unit_bytes if wanted <= self.ceiling_tokens else None for wanted in hit_tokens]


def integers_up_to(limit: int) -> type[np.int64] | type[object]:
    """The type of arrays of integers from 0 to a limit."""
    return np.int64 if limit < 2**63 else object


def scaled(ascending: Integers, factor: int) -> Integers:
    """Integers in a unit so many times as small."""
    largest = int(ascending[-1]) * factor if len(ascending) else 0
    product: Integers = ascending.astype(integers_up_to(largest)) * factor
    return product
