"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from litehit.projector import HitCurveProjector
from litehit.totals import SlotTotals
from schemas.answers import Ceiling
from service.api.sums import GroupKey, HitSums


@dataclass(frozen=True, slots=True)
class Question:
    """What to read off the sums.

    Attributes:
        capacity_gb: capacities in binary GB, in the order of the answer; negative = infinite.
        block_bytes: bytes charged to every block instead of what each fact carries; None = each fact's own.
    """

    capacity_gb: Sequence[float]
    block_bytes: int | None = None


def tally(question: Question, groups: Iterable[tuple[GroupKey, HitSums]]) -> SlotTotals:
    """Add up groups."""
    totals = SlotTotals(tuple(question.capacity_gb))
    capacities = [*map(HitCurveProjector.capacity_bytes, question.capacity_gb)]
    for key, sums in groups:
        charge = question.block_bytes or key.block_bytes
        totals.add(
            requests=sums.requests,
            input_tokens=sums.input_tokens,
            hit_blocks=sums.hits(HitCurveProjector.capacities_blocks(capacities, charge)).tolist(),
            ceiling_blocks=sums.ceiling(),
            block_size_tokens=key.block_size_tokens,
        )
    return totals


def add_up(question: Question, tallies: Iterable[SlotTotals]) -> SlotTotals:
    """Add up tallies of the same question."""
    totals = SlotTotals(tuple(question.capacity_gb))
    for one in tallies:
        totals.merge(one)
    return totals


def summary(totals: SlotTotals) -> dict[str, Any]:
    """The fields of `schemas.answers.Summary`."""
    ceiling = Ceiling(hit_blocks=totals.ceiling_blocks, hit_tokens=totals.ceiling_tokens, hit_rate=totals.ceiling_rate)
    return {**totals.summary(), "ceiling": ceiling}
