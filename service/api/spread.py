"""How much capacity a share of all hits needs: the spread of reuse distances."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from service.api.grouping import by_instance
from service.api.hit_function import HitFunction
from service.api.index import FactIndex, IndexLoading
from service.api.sums import GroupKey, HitSums
from service.api.windows import TimeWindow

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

    An instance is computed again only where its facts have changed, and one call takes so long at most; what it does
    not reach keeps its numbers and comes first in the next.

    Args:
        index: sums of the facts.
        seconds: what one refresh may take.
        clock: seconds that never go back.
    """

    def __init__(self, index: FactIndex, seconds: float = 0.2, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._seconds = seconds
        self._clock = clock
        self._known: dict[str, tuple[Sequence[tuple[GroupKey, HitSums]], Sequence[int]]] = {}
        self._refreshing = threading.Lock()

    def refresh(self) -> None:
        """Compute what has changed; nothing before the index has loaded."""
        with self._refreshing:
            try:
                selection = self._index.select(TimeWindow(), None)
            except IndexLoading:
                return
            deadline = self._clock() + self._seconds
            groups = by_instance(selection, ())
            known = {one: self._known[one] for one in self._known if one in groups}
            changed = [one for one in groups if one not in known or list(known[one][0]) != list(groups[one])]
            # A dictionary keeps the order of insertion: those that waited longest come first.
            places = {one: place for place, one in enumerate(known)}
            for instance_id in sorted(changed, key=lambda one: places.get(one, -1)):
                if self._clock() > deadline:
                    break
                known.pop(instance_id, None)
                known[instance_id] = (groups[instance_id], spread(HitFunction(groups[instance_id]), GAUGED_SHARES))
            self._known = known

    def capacities(self) -> Mapping[str, Mapping[str, int]]:
        """Smallest capacity in bytes by instance and share, as of the last refresh."""
        return {
            instance_id: dict(zip(GAUGED_SHARES, capacities, strict=True))
            for instance_id, (_, capacities) in sorted(self._known.items())
        }
