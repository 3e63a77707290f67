"""The running sum of an instance's facts: exact at every capacity, and ready at those that are configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from litehit.aggregate import AggregateCurve
from litehit.facts import FactBatch
from litehit.projector import INFINITE, HitCurveProjector
from litehit.registry import InstanceConfig


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


@dataclass(frozen=True, slots=True)
class SlotCount:
    """Hits at one capacity.

    Attributes:
        capacity_gb: binary GB; None = infinite, the ceiling.
        hit_blocks, hit_tokens: of all facts.
    """

    capacity_gb: float | None
    hit_blocks: int
    hit_tokens: int


@dataclass(frozen=True, slots=True)
class InstanceCounts:
    """An instance's facts at one moment.

    Attributes:
        requests, input_tokens: sums over the facts.
        slots: one for each configured capacity, then the ceiling.
    """

    requests: int
    input_tokens: int
    slots: tuple[SlotCount, ...]


class OnlineCounters:
    """Adds up facts as they are made.

    The hits of the configured slots are kept beside the curves, so that reading them costs nothing; those of slots
    that are configured later are read off the curves, which say what `/query` says over the same facts.

    Args:
        config: its slots are those that are kept ready.
        sums: the facts so far; taken over.
    """

    def __init__(self, config: InstanceConfig, sums: Mapping[Charge, ChargeSums] | None = None) -> None:
        self._sums = dict(sums or {})
        self._slots: dict[float | None, int] = {
            capacity: HitCurveProjector.capacity_bytes(capacity) for capacity in config.capacity_gb
        }
        self._slots[None] = INFINITE
        self._hit_blocks = dict.fromkeys(self._slots, 0)
        self._hit_tokens = dict.fromkeys(self._slots, 0)
        for charge, group in self._sums.items():
            for slot, capacity in self._slots.items():
                hits = group.curve.hits(HitCurveProjector.capacity_blocks(capacity, charge.block_bytes))
                self._add_hits(slot, hits, charge)

    def add(self, charge: Charge, facts: FactBatch) -> None:
        """Add facts of one charge."""
        group = self._sums.setdefault(charge, ChargeSums())
        group.requests += len(facts)
        group.input_tokens += int(facts.input_token_lens.sum())
        group.curve.add(facts.hit_curves)
        starts, runs = facts.hit_curves.starts, facts.hit_curves.runs
        for slot, capacity in self._slots.items():
            blocks = HitCurveProjector.capacity_blocks(capacity, charge.block_bytes)
            self._add_hits(slot, int(HitCurveProjector.segment_hits(starts, runs, blocks).sum()), charge)

    def counts(self) -> InstanceCounts:
        """The sums as they are now."""
        return InstanceCounts(
            sum(group.requests for group in self._sums.values()),
            sum(group.input_tokens for group in self._sums.values()),
            tuple(SlotCount(slot, self._hit_blocks[slot], self._hit_tokens[slot]) for slot in self._slots),
        )

    def copy_sums(self) -> dict[Charge, ChargeSums]:
        """A copy of the sums, made at once."""
        return {
            charge: ChargeSums(group.requests, group.input_tokens, group.curve.copy())
            for charge, group in self._sums.items()
        }

    def _add_hits(self, slot: float | None, blocks: int, charge: Charge) -> None:
        self._hit_blocks[slot] += blocks
        self._hit_tokens[slot] += blocks * charge.block_size_tokens
