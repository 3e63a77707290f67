"""How far some facts go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """How far some facts of a chain go.

    Attributes:
        next_offset: first offset past them.
        first_time_ns, last_time_ns: earliest and latest time of a fact, in nanoseconds; the latest possible and the
            earliest where there is no fact.
        start_offset: where they begin, behind those that retention removed; else 0.
        missing: offsets, as (first, first no longer missing), whose facts no segment holds.
        unreadable: why files behind the last segment can't be read; how many facts they hold is unknown.
    """

    next_offset: int
    first_time_ns: int
    last_time_ns: int
    start_offset: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    unreadable: tuple[str, ...] = ()

    @classmethod
    def without_facts(
        cls, start_offset: int, missing: tuple[tuple[int, int], ...], unreadable: tuple[str, ...]
    ) -> Reach:
        """That of a chain whose facts were all removed by retention, or can't be read."""
        return cls(start_offset, 2**63 - 1, -(2**63), start_offset, missing, unreadable)

    @property
    def has_facts(self) -> bool:
        """Whether there is a fact at all."""
        return self.first_time_ns <= self.last_time_ns

    def __or__(self, other: Reach) -> Reach:
        """How far both together go."""
        return Reach(
            max(self.next_offset, other.next_offset),
            min(self.first_time_ns, other.first_time_ns),
            max(self.last_time_ns, other.last_time_ns),
            max(self.start_offset, other.start_offset),
            self.missing + other.missing,
            self.unreadable + other.unreadable,
        )
