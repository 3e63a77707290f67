"""Hits as a function of the capacity, over groups of any block sizes and charges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.projector import HitCurveProjector
from service.api.groups import GroupKey
from service.api.selection import HitSums

Integers: TypeAlias = NDArray[Any]
"""int64, or Python's integers where 64 bits may not do."""

_CAPACITY_BITS = 63
"""No curve grows beyond a capacity of this many bits in blocks."""


class Hits(NamedTuple):
    """Hits at K capacities.

    Attributes:
        blocks, tokens: integers[K].
    """

    blocks: Integers
    tokens: Integers


@dataclass(frozen=True, slots=True)
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

    def hits(self, capacity_bytes: Sequence[int]) -> Int64Array:
        """Hit blocks at K capacities in bytes (negative: infinite): int64[K]."""
        capacity_blocks = HitCurveProjector.capacities_blocks(capacity_bytes, self.block_bytes)
        return sum((sums.hits(capacity_blocks) for sums in self.sums), np.zeros(len(capacity_blocks), np.int64))


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
        everything = [(part, sums) for part in self.parts for sums in part.sums]
        self.requests = sum(sums.requests for _, sums in everything)
        self.input_tokens = sum(sums.input_tokens for _, sums in everything)
        self.ceiling_blocks = sum(sums.ceiling() for _, sums in everything)
        self.ceiling_tokens = sum(sums.ceiling() * part.block_size_tokens for part, sums in everything)
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

    def hits(self, capacity_bytes: Sequence[int]) -> Hits:
        """Hits at K capacities in bytes (negative: infinite)."""
        dtype = integers_up_to(self.ceiling_tokens)
        blocks, tokens = np.zeros((2, len(capacity_bytes)), dtype)
        for part in self.parts:
            hits = part.hits(capacity_bytes).astype(dtype)
            blocks += hits
            tokens += hits * part.block_size_tokens
        return Hits(blocks, tokens)

    def tokens_for_rate(self, hit_rate: Fraction) -> int:
        """The fewest hit tokens that give a hit rate."""
        return ceil(hit_rate * self.input_tokens)

    def tokens_for_share(self, share: Fraction) -> int:
        """The fewest hit tokens that are a share of the ceiling."""
        return ceil(share * self.ceiling_tokens)

    def smallest(self, hit_tokens: Sequence[int]) -> list[int | None]:
        """The smallest capacity in bytes that gives so many hit tokens, for K numbers; None above the ceiling."""
        # In units, for a capacity between two multiples of it gives no more than the lower one.
        largest_charge = max((part.block_bytes for part in self.parts), default=1) // self.unit_bytes
        doublings = [0, *(1 << bit for bit in range(_CAPACITY_BITS + largest_charge.bit_length() + 1))]
        at_doublings = self.hits([units * self.unit_bytes for units in doublings]).tokens.tolist()
        reachable = [wanted for wanted in hit_tokens if wanted <= self.ceiling_tokens]
        places = [bisect_left(at_doublings, wanted) for wanted in reachable]
        high = [doublings[place] for place in places]
        low = [doublings[place - 1] + 1 if place else 0 for place in places]
        while low != high:
            middle = [(first + last) // 2 for first, last in zip(low, high, strict=True)]
            got = self.hits([units * self.unit_bytes for units in middle]).tokens.tolist()
            for slot, wanted in enumerate(reachable):
                if got[slot] >= wanted:
                    high[slot] = middle[slot]
                elif low[slot] < high[slot]:
                    low[slot] = middle[slot] + 1
        found = iter(high)
        return [next(found) * self.unit_bytes if wanted <= self.ceiling_tokens else None for wanted in hit_tokens]


def integers_up_to(limit: int) -> type[np.int64] | type[object]:
    """The type of arrays of integers from 0 to a limit."""
    return np.int64 if limit < 2**63 else object


def scaled(ascending: Integers, factor: int) -> Integers:
    """Integers in a unit so many times as small."""
    largest = int(ascending[-1]) * factor if len(ascending) else 0
    product: Integers = ascending.astype(integers_up_to(largest)) * factor
    return product
