"""The running sum of an instance's facts: exact at every capacity, and ready at those that are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from litehit.aggregate import AggregateCurve
from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from litehit.registry import InstanceConfig
from litehit.totals import SlotTotals

_MOST_WAITING = 1024
"""Facts that may wait to be added up."""


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

    The hits of the configured slots are kept beside the curves, so that reading them costs little; those of slots
    that are configured later are read off the curves, which say what `/query` says over the same facts. Facts wait
    until they are many or somebody reads: adding costs by batches rather than by facts.

    Args:
        config: its slots are those that are kept ready.
        sums: the facts so far.
    """

    def __init__(self, config: InstanceConfig, sums: Mapping[Charge, ChargeSums] | None = None) -> None:
        self._waiting: list[tuple[Charge, FactBatch]] = []
        self._waiting_facts = 0
        self._sums = {charge: group.copy() for charge, group in (sums or {}).items()}
        self._totals = SlotTotals(config.capacity_gb)
        self._slot_bytes = [HitCurveProjector.capacity_bytes(capacity) for capacity in config.capacity_gb]
        for charge, group in self._sums.items():
            self._count(charge, group.requests, group.input_tokens, group.curve.hits, group.curve.ceiling())

    def add(self, charge: Charge, facts: FactBatch) -> None:
        """Add facts of one charge."""
        self._waiting.append((charge, facts))
        self._waiting_facts += len(facts)
        if self._waiting_facts >= _MOST_WAITING:
            self._settle()

    def totals(self) -> SlotTotals:
        """A copy of the sums as they are now."""
        self._settle()
        copy = SlotTotals(self._totals.capacity_gb)
        copy.merge(self._totals)
        return copy

    def copy_sums(self) -> dict[Charge, ChargeSums]:
        """A copy of the curves and what belongs to them, made at once."""
        self._settle()
        return {charge: group.copy() for charge, group in self._sums.items()}

    def _settle(self) -> None:
        """Add up what waits."""
        for charge, batches in groupby(self._waiting, key=lambda one: one[0]):
            self._add_up(charge, [facts for _, facts in batches])
        self._waiting.clear()
        self._waiting_facts = 0

    def _add_up(self, charge: Charge, batches: Sequence[FactBatch]) -> None:
        curves = FlatCurves.concatenate([facts.hit_curves for facts in batches])
        input_tokens = sum(int(facts.input_token_lens.sum()) for facts in batches)
        group = self._sums.setdefault(charge, ChargeSums())
        group.requests += len(curves)
        group.input_tokens += input_tokens
        group.curve.add(curves)

        def hits(capacity_blocks: Int64Array) -> Int64Array:
            slots = [HitCurveProjector.segment_hits(curves.starts, curves.runs, one).sum() for one in capacity_blocks]
            return np.array(slots, np.int64)

        self._count(charge, len(curves), input_tokens, hits, int(curves.runs.sum()))

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
