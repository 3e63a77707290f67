"""The ledger of a lane: what became of each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from schemas.dead_letter import Reason

Kind = TypeVar("Kind", bound=StrEnum)

_NONE: Mapping[Any, int] = MappingProxyType({})


class Ignored(StrEnum):
    """Why a record that is well-formed gives no fact and is no dead letter."""

    WRITE = "write"
    """It is no request: a write, or another event that the format's producer mixes in."""
    REGISTRATION = "registration"
    """It registers an instance, and was followed."""
    REPEAT = "repeat"
    """A request that its producer sent again."""


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """Records of a batch, or of a lane since it was opened, by what became of them.

    Attributes:
        consumed: records in all.
        facts: requests that became facts: one, and one more for each variant.
        ignored: records that gave nothing, by why.
        dead_letters: records by the reason that made them a dead letter.
        times_clamped: requests whose time lies behind an earlier one's of their instance.
        fact_records: facts that they became.
    """

    consumed: int = 0
    facts: int = 0
    ignored: Mapping[Ignored, int] = field(default_factory=lambda: _NONE)
    dead_letters: Mapping[Reason, int] = field(default_factory=lambda: _NONE)
    times_clamped: int = 0
    fact_records: int = 0

    def __post_init__(self) -> None:
        accounted = self.facts + sum(self.ignored.values()) + sum(self.dead_letters.values())
        if self.consumed != accounted:
            raise AssertionError(f"{self.consumed} records consumed, {accounted} accounted for: {self}")

    def __add__(self, other: LaneCounts) -> LaneCounts:
        return LaneCounts(
            self.consumed + other.consumed,
            self.facts + other.facts,
            _sum(self.ignored, other.ignored),
            _sum(self.dead_letters, other.dead_letters),
            self.times_clamped + other.times_clamped,
            self.fact_records + other.fact_records,
        )


def _sum(one: Mapping[Kind, int], other: Mapping[Kind, int]) -> dict[Kind, int]:
    return {kind: one.get(kind, 0) + other.get(kind, 0) for kind in one.keys() | other.keys()}
