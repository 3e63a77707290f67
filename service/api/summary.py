"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from litehit.projector import INFINITE, HitCurveProjector
from schemas.answers import Ceiling
from service.api.sums import GroupKey, GroupSums


@dataclass(frozen=True, slots=True)
class Question:
    """What to read off the sums.

    Attributes:
        capacity_gb: capacities in binary GB, in the order of the answer; negative = infinite.
        block_bytes: bytes charged to every block instead of what each fact carries; None = each fact's own.
    """

    capacity_gb: Sequence[float]
    block_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """The integers of an answer.

    Attributes:
        requests: number of facts.
        input_tokens: tokens of their prompts.
        hit_blocks, hit_tokens: at each capacity of the question, then at infinite capacity.
    """

    requests: int
    input_tokens: int
    hit_blocks: tuple[int, ...]
    hit_tokens: tuple[int, ...]

    def summary(self, question: Question) -> dict[str, Any]:
        """The fields of `schemas.answers.Summary`; a rate is sum over sum."""
        rates = [tokens / self.input_tokens if self.input_tokens else 0.0 for tokens in self.hit_tokens]
        return {
            "requests": self.requests,
            "total_input_tokens": self.input_tokens,
            "capacity_gb": list(question.capacity_gb),
            "total_hit_blocks": self.hit_blocks[:-1],
            "total_hit_tokens": self.hit_tokens[:-1],
            "hit_rates": rates[:-1],
            "ceiling": Ceiling(hit_blocks=self.hit_blocks[-1], hit_tokens=self.hit_tokens[-1], hit_rate=rates[-1]),
        }


def tally(question: Question, groups: Iterable[tuple[GroupKey, GroupSums]]) -> Tally:
    """Add up groups."""
    capacities = [*map(HitCurveProjector.capacity_bytes, question.capacity_gb), INFINITE]
    return add_up(question, (_tally_group(capacities, question.block_bytes, key, sums) for key, sums in groups))


def add_up(question: Question, tallies: Iterable[Tally]) -> Tally:
    """Add up tallies of the same question."""
    requests = input_tokens = 0
    hit_blocks = hit_tokens = [0] * (len(question.capacity_gb) + 1)
    for one in tallies:
        requests += one.requests
        input_tokens += one.input_tokens
        hit_blocks = [a + b for a, b in zip(hit_blocks, one.hit_blocks, strict=True)]
        hit_tokens = [a + b for a, b in zip(hit_tokens, one.hit_tokens, strict=True)]
    return Tally(requests, input_tokens, tuple(hit_blocks), tuple(hit_tokens))


def _tally_group(capacities: Iterable[int], block_bytes: int | None, key: GroupKey, sums: GroupSums) -> Tally:
    charge = block_bytes or key.block_bytes
    hit_blocks = [sums.hits(HitCurveProjector.capacity_blocks(capacity, charge)) for capacity in capacities]
    hit_tokens = [blocks * key.block_size_tokens for blocks in hit_blocks]
    return Tally(sums.requests, sums.input_tokens, tuple(hit_blocks), tuple(hit_tokens))
