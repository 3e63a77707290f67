"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from litehit.curves import Int64Array
from litehit.projector import INFINITE, HitCurveProjector
from service.api.groups import Groups
from service.api.selection import Selection

_ONE_GB = HitCurveProjector.capacity_bytes(1)
_LISTS = (
    ',"total_hit_blocks":[',
    '],"total_hit_tokens":[',
    '],"hit_rates":[',
    '],"of_ceiling":[',
    '],"gain_per_gb":{"hit_blocks":[',
    '],"hit_tokens":[',
    '],"hit_rates":[',
)
"""What stands before each list of a summary."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to read off the sums.

    Attributes:
        capacity_gb: K capacities in binary GB, in the order of the answer; negative = infinite.
        block_bytes: bytes charged to every block instead of what each fact carries; None = each fact's own.
    """

    capacity_gb: Sequence[float]
    block_bytes: int | None = None

    def capacity_blocks(self, groups: Groups) -> Int64Array:
        """The capacities, then each with a GB more, in blocks: int64[N, 2 K] for N groups."""
        asked = [*map(HitCurveProjector.capacity_bytes, self.capacity_gb)]
        capacities = [*asked, *(one if one == INFINITE else one + _ONE_GB for one in asked)]
        charges = groups.block_bytes if self.block_bytes is None else np.full(len(groups), self.block_bytes)
        return HitCurveProjector.capacities_blocks(capacities, charges[:, np.newaxis])


@dataclass(frozen=True, slots=True)
class Summaries:
    """Sums at the capacities of a question: JSON of `schemas.answers`.

    A call names tens of instances, and making their models took ten times as long as reading off their hits.

    Attributes:
        total: a `Summary` over all groups.
        instances: an `InstanceSummary` of each instance, by instance id, with commas between them.
    """

    total: str
    instances: str

    @classmethod
    def of(cls, question: Question, selection: Selection, instance_ids: Collection[str] = ()) -> Summaries:
        """Answer a question.

        Args:
            question: what to read off.
            selection: the sums.
            instance_ids: which instances are named, also without a fact; none: those with one.
        """
        counted = selection.by_instance
        if instance_ids:
            counted = counted.chosen(sorted(set(instance_ids)))
        hits = selection.hits(question.capacity_blocks(selection.keyed))
        counts, rates = map(_numerals, counted.summarised(hits))
        lists = ((counts, 0), (counts, 1), (rates, 0), (rates, 1), (counts, 2), (counts, 3), (rates, 2))
        # A row is its begin, its capacities, each number behind what stands before it, and its end.
        slots = len(question.capacity_gb)
        row = ["", f',"capacity_gb":{to_json(list(map(float, question.capacity_gb))).decode()}']
        for before in _LISTS:
            row += [before, "", *([",", ""] * (slots - 1))]
        width, height = len(row) + 1, len(counted.begins)
        written = [*row, ""] * height
        written[::width], written[width - 1 :: width] = counted.begins, counted.ends
        for place, (numbers, column) in enumerate(lists):
            for slot in range(slots):
                written[3 + 2 * (place * slots + slot) :: width] = numbers[
                    column * slots + slot :: len(numbers) // height
                ]
        return cls("".join(written[:width]), "".join(written[width:]))


def _numerals(numbers: NDArray[Any]) -> list[str]:
    """Each number as JSON, row by row, in a quarter of the time that Python takes to write its floats."""
    return to_json(numbers.ravel().tolist()).decode()[1:-1].split(",")
