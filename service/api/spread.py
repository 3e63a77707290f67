"""How much capacity a share of all hits needs: the spread of reuse distances."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from service.api.grouping import by_instance
from service.api.hit_function import HitFunction
from service.api.index import FactIndex, IndexLoading
from service.api.reach import Reach
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey

SHARES = ("0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "0.995", "1")
"""Of the hits of an infinite cache, for answers."""

GAUGED_SHARES = ("0.6", "0.8", "0.9", "0.95", "0.99", "0.995")
"""The same, for gauges."""


def spread(function: HitFunction, shares: Sequence[str]) -> list[int]:
    """The smallest capacity in bytes for each share of the ceiling.

    A hit block's reuse distance is the smallest capacity that hits it, so these are quantiles of the hits by distance.
    """
    found = function.smallest([function.tokens_for_share(Fraction(share)) for share in shares])
    return [one for one in found if one is not None]  # no share is above the ceiling


class InstanceSpreads:
    """The spread of each instance over all facts, kept up to date as it is asked for.

    One refresh takes so long at most: what it does not reach keeps its numbers and comes first in the next.

    Args:
        index: sums of the facts.
        seconds: what one refresh may take.
        clock: seconds that never go back.
    """

    def __init__(self, index: FactIndex, seconds: float = 0.2, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._seconds = seconds
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._refreshing = threading.Lock()

    def refresh(self) -> None:
        """Compute again what facts have come for; nothing before the index has loaded."""
        with self._refreshing:
            try:
                selection = self._index.select(TimeWindow(), None)
            except IndexLoading:
                return
            deadline = self._clock() + self._seconds
            groups = by_instance(selection, ())
            # A dictionary keeps the order of insertion: the new ones, then those that have waited longest.
            known = {one: self._known[one] for one in self._known if one in groups}
            for instance_id in [*(one for one in groups if one not in known), *known]:
                if instance_id in known and known[instance_id].as_of == selection.as_of:
                    continue
                if self._clock() > deadline:
                    break
                known.pop(instance_id, None)
                capacities = spread(HitFunction(groups[instance_id]), GAUGED_SHARES)
                known[instance_id] = _Known(selection.as_of, dict(zip(GAUGED_SHARES, capacities, strict=True)))
            self._known = known

    def capacities(self) -> Mapping[str, Mapping[str, int]]:
        """Smallest capacity in bytes by instance and share, as of the last refresh."""
        known = self._known
        return {instance_id: known[instance_id].capacities for instance_id in sorted(known)}


@dataclass(frozen=True, slots=True)
class _Known:
    as_of: Sequence[tuple[ChainKey, Reach]]
    capacities: Mapping[str, int]
