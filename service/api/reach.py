"""How far some facts go."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """How far some facts of a chain go.

    Attributes:
        next_offset: first offset past them.
        first_time_ns, last_time_ns: earliest and latest time of a fact, in nanoseconds.
        start_offset: where they begin, behind those that retention removed; else 0.
        missing: offsets, as (first, first no longer missing), whose facts no segment holds.
    """

    next_offset: int
    first_time_ns: int
    last_time_ns: int
    start_offset: int = 0
    missing: tuple[tuple[int, int], ...] = ()

    def __or__(self, other: Reach) -> Reach:
        """How far both together go."""
        return Reach(
            max(self.next_offset, other.next_offset),
            min(self.first_time_ns, other.first_time_ns),
            max(self.last_time_ns, other.last_time_ns),
            max(self.start_offset, other.start_offset),
            self.missing + other.missing,
        )
