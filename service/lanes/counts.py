"""The ledger of a lane: what became of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from schemas.dead_letter import Reason

_NONE: Mapping[Reason, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """Records of a batch, or of a lane since it was opened, by what became of them.

    Attributes:
        consumed: records in all.
        facts: requests that became a fact.
        ignored: records that were recognised and ignored, such as write events.
        dead_letters: records by the reason that made them a dead letter.
        times_clamped: requests whose time lies behind an earlier one's of their instance.
    """

    consumed: int = 0
    facts: int = 0
    ignored: int = 0
    dead_letters: Mapping[Reason, int] = field(default_factory=lambda: _NONE)
    times_clamped: int = 0

    def __post_init__(self) -> None:
        accounted = self.facts + self.ignored + sum(self.dead_letters.values())
        if self.consumed != accounted:
            raise AssertionError(f"{self.consumed} records consumed, {accounted} accounted for: {self}")

    def __add__(self, other: LaneCounts) -> LaneCounts:
        reasons = self.dead_letters.keys() | other.dead_letters.keys()
        return LaneCounts(
            self.consumed + other.consumed,
            self.facts + other.facts,
            self.ignored + other.ignored,
            {reason: self.dead_letters.get(reason, 0) + other.dead_letters.get(reason, 0) for reason in reasons},
            self.times_clamped + other.times_clamped,
        )
