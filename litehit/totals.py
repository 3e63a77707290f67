"""Sums over many requests, one slot a capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SlotTotals:
    """Exact integers of a summary: a few for each slot.

    Attributes:
        capacity_gb: the slots, in binary GB, in the order asked; duplicates and 0 are allowed, negative = infinite.
        requests: number of requests.
        input_tokens: sum of their input lengths, in tokens.
        hit_blocks, hit_tokens: sums by slot.
        ceiling_blocks, ceiling_tokens: the same sums at infinite capacity.
    """

    capacity_gb: tuple[float, ...]
    requests: int = 0
    input_tokens: int = 0
    hit_blocks: list[int] = field(init=False)
    hit_tokens: list[int] = field(init=False)
    ceiling_blocks: int = 0
    ceiling_tokens: int = 0

    def __post_init__(self) -> None:
        self.hit_blocks = [0] * len(self.capacity_gb)
        self.hit_tokens = [0] * len(self.capacity_gb)

    def add(
        self,
        *,
        requests: int,
        input_tokens: int,
        hit_blocks: Sequence[int],
        ceiling_blocks: int,
        block_size_tokens: int,
    ) -> None:
        """Add the sums of some requests that share a block size.

        Args:
            requests: how many.
            input_tokens: sum of their input lengths.
            hit_blocks: sum of their hit blocks, by slot.
            ceiling_blocks: sum of their hit blocks at infinite capacity.
            block_size_tokens: tokens of one of their blocks.
        """
        self.requests += requests
        self.input_tokens += input_tokens
        for slot, blocks in enumerate(hit_blocks):
            self.hit_blocks[slot] += blocks
            self.hit_tokens[slot] += blocks * block_size_tokens
        self.ceiling_blocks += ceiling_blocks
        self.ceiling_tokens += ceiling_blocks * block_size_tokens

    def merge(self, other: SlotTotals) -> None:
        """Add the totals of other requests, with the same slots."""
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.hit_blocks = [a + b for a, b in zip(self.hit_blocks, other.hit_blocks, strict=True)]
        self.hit_tokens = [a + b for a, b in zip(self.hit_tokens, other.hit_tokens, strict=True)]
        self.ceiling_blocks += other.ceiling_blocks
        self.ceiling_tokens += other.ceiling_tokens

    @property
    def hit_rates(self) -> list[float]:
        """Tokens hit of all tokens, by slot: a quotient of sums, never a mean of quotients; 0.0 without tokens."""
        return [self._rate(tokens) for tokens in self.hit_tokens]

    @property
    def ceiling_rate(self) -> float:
        """The hit rate at infinite capacity."""
        return self._rate(self.ceiling_tokens)

    @property
    def of_ceiling(self) -> list[float]:
        """Tokens hit of those hit at infinite capacity, by slot; 1.0 where that hits none, for nothing is missed."""
        return [tokens / self.ceiling_tokens if self.ceiling_tokens else 1.0 for tokens in self.hit_tokens]

    def summary(self) -> dict[str, Any]:
        """The fields that a summary has wherever one is shown: the facts query and the HTTP API."""
        return {
            "requests": self.requests,
            "total_input_tokens": self.input_tokens,
            "capacity_gb": self.capacity_gb,
            "total_hit_blocks": self.hit_blocks,
            "total_hit_tokens": self.hit_tokens,
            "hit_rates": self.hit_rates,
            "of_ceiling": self.of_ceiling,
            "ceiling": {
                "hit_blocks": self.ceiling_blocks,
                "hit_tokens": self.ceiling_tokens,
                "hit_rate": self.ceiling_rate,
            },
        }

    def _rate(self, hit_tokens: int) -> float:
        return hit_tokens / self.input_tokens if self.input_tokens else 0.0
