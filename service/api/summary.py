"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from litehit.projector import INFINITE, HitCurveProjector
from litehit.totals import SlotTotals
from schemas.answers import Gain
from service.api.sums import GroupKey, HitSums

_ONE_GB = HitCurveProjector.capacity_bytes(1)


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
    """Sums over some groups.

    Attributes:
        asked: at the capacities of the question.
        next_gb: at one GB more than each.
    """

    asked: SlotTotals
    next_gb: SlotTotals

    @classmethod
    def of(cls, question: Question, groups: Iterable[tuple[GroupKey, HitSums]]) -> Tally:
        """Add up groups."""
        tally = cls.zero(question)
        capacities = [*map(HitCurveProjector.capacity_bytes, question.capacity_gb)]
        grown = [capacity if capacity == INFINITE else capacity + _ONE_GB for capacity in capacities]
        for key, sums in groups:
            charge = question.block_bytes or key.block_bytes
            hits = sums.hits(HitCurveProjector.capacities_blocks([*capacities, *grown], charge)).tolist()
            ceiling = sums.ceiling()
            for totals, hit_blocks in ((tally.asked, hits[: len(grown)]), (tally.next_gb, hits[len(grown) :])):
                totals.add(
                    requests=sums.requests,
                    input_tokens=sums.input_tokens,
                    hit_blocks=hit_blocks,
                    ceiling_blocks=ceiling,
                    block_size_tokens=key.block_size_tokens,
                )
        return tally

    @classmethod
    def sum(cls, question: Question, tallies: Iterable[Tally]) -> Tally:
        """Add up tallies of the same question."""
        total = cls.zero(question)
        for one in tallies:
            total.asked.merge(one.asked)
            total.next_gb.merge(one.next_gb)
        return total

    @classmethod
    def zero(cls, question: Question) -> Tally:
        """No facts."""
        return cls(SlotTotals(tuple(question.capacity_gb)), SlotTotals(tuple(question.capacity_gb)))

    def summary(self) -> dict[str, Any]:
        """The fields of `schemas.answers.Summary`."""
        asked = self.asked
        gained_tokens = [more - now for now, more in zip(asked.hit_tokens, self.next_gb.hit_tokens, strict=True)]
        gain = Gain(
            hit_blocks=[more - now for now, more in zip(asked.hit_blocks, self.next_gb.hit_blocks, strict=True)],
            hit_tokens=gained_tokens,
            hit_rates=[tokens / asked.input_tokens if asked.input_tokens else 0.0 for tokens in gained_tokens],
        )
        return {**asked.summary(), "gain_per_gb": gain}
