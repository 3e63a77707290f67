"""The running sum of an instance's facts: exact at every capacity, and ready at those that are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from litehit.aggregate import AggregateCurve
from litehit.curves import Int64Array
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals


class Charge(NamedTuple):
    """What facts must share for their curves to be added up in blocks."""

    block_size_tokens: int
    block_bytes: int


@dataclass(slots=True)
class ChargeSums:
    """The facts of one charge, summed.

    Attributes:
        requests: number of facts.
        input_tokens: tokens of their prompts.
        curve: their curves.
    """

    requests: int = 0
    input_tokens: int = 0
    curve: AggregateCurve = field(default_factory=AggregateCurve)

    def copy(self) -> ChargeSums:
        """A copy, made at once."""
        return ChargeSums(self.requests, self.input_tokens, self.curve.copy())


class OnlineCounters:
    """Adds up facts as they are made.

    The hits of the configured slots are kept beside the curves, so that reading them costs nothing; those of slots
    that are configured later are read off the curves, which say what `/query` says over the same facts.

    Args:
        config: its slots are those that are kept ready.
        sums: the facts so far.
    """

    def __init__(self, config: InstanceConfig, sums: Mapping[Charge, ChargeSums] | None = None) -> None:
        self._sums = {charge: group.copy() for charge, group in (sums or {}).items()}
        self._totals = SlotTotals(config.capacity_gb)
        self._slot_bytes = [HitCurveProjector.capacity_bytes(capacity) for capacity in config.capacity_gb]
        for charge, group in self._sums.items():
            self._count(charge, group.requests, group.input_tokens, group.curve.hits, group.curve.ceiling())

    def add(self, charge: Charge, facts: FactBatch) -> None:
        """Add facts of one charge."""
        curves = facts.hit_curves
        input_tokens = int(facts.input_token_lens.sum())
        group = self._sums.setdefault(charge, ChargeSums())
        group.requests += len(facts)
        group.input_tokens += input_tokens
        group.curve.add(curves)

        def hits(capacity_blocks: Int64Array) -> Int64Array:
            slots = [HitCurveProjector.segment_hits(curves.starts, curves.runs, one).sum() for one in capacity_blocks]
            return np.array(slots, np.int64)

        self._count(charge, len(facts), input_tokens, hits, int(curves.runs.sum()))

    def totals(self) -> SlotTotals:
        """A copy of the sums as they are now."""
        copy = SlotTotals(self._totals.capacity_gb)
        copy.merge(self._totals)
        return copy

    def copy_sums(self) -> dict[Charge, ChargeSums]:
        """A copy of the curves and what belongs to them, made at once."""
        return {charge: group.copy() for charge, group in self._sums.items()}

    def _count(
        self, charge: Charge, requests: int, input_tokens: int, hits: Callable[[Int64Array], Int64Array], ceiling: int
    ) -> None:
        self._totals.add(
            requests=requests,
            input_tokens=input_tokens,
            hit_blocks=hits(HitCurveProjector.capacities_blocks(self._slot_bytes, charge.block_bytes)).tolist(),
            ceiling_blocks=ceiling,
            block_size_tokens=charge.block_size_tokens,
        )
