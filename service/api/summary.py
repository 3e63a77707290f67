"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from pydantic_core import to_json

from litehit.curves import Int64Array
from litehit.projector import INFINITE, HitCurveProjector
from service.api.groups import Groups
from service.api.instance_sums import InstanceSums, Integers
from service.api.selection import Selection

_ONE_GB = HitCurveProjector.capacity_bytes(1)


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
        if self.block_bytes is not None:
            return np.tile(HitCurveProjector.capacities_blocks(capacities, self.block_bytes), (len(groups), 1))
        charges, places = groups.charges
        blocks = np.empty((len(charges), len(capacities)), np.int64)
        for row, charge in zip(blocks, charges, strict=True):
            row[:] = HitCurveProjector.capacities_blocks(capacities, charge)
        return blocks[places]


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
        counted, hits = selection.by_instance, _hits(question, selection)
        named = counted.instance_ids
        if instance_ids:
            named = tuple(sorted(set(instance_ids)))
            counted, rows = counted.chosen(named)
            hits = np.append(hits, np.zeros_like(hits[:1]), axis=0)[rows]
        requests, tokens, *ceiling = counted.numerals
        lists = _lists(counted, hits)
        columns = (requests, tokens, *(lists[first : first + len(hits)] for first in range(0, len(lists), len(hits))))
        texts = _texts(question.capacity_gb)
        row = [""] * (2 * len(texts))
        row[::2] = texts
        written = row * len(hits)
        written[1::2] = chain.from_iterable(zip(*columns, *ceiling, ("}", *_ends(named)), strict=True))
        return cls("".join(written[: len(row)]), "".join(written[len(row) :]))


def _hits(question: Question, selection: Selection) -> Integers:
    """Hit blocks at the 2 K capacities of a question, then hit tokens: integers[1 + I, 4 K], as `InstanceSums`."""
    groups, counted = selection.keyed, selection.by_instance
    of_groups = selection.hits(question.capacity_blocks(groups)).astype(counted.dtype, copy=False)
    return counted.summed(np.concatenate([of_groups, of_groups * groups.block_size_tokens[:, np.newaxis]], axis=1))


def _lists(counted: InstanceSums, hits: Integers) -> list[str]:
    """The lists of summaries, each as JSON without brackets: of all rows the first, then the second, and so on."""
    count = hits.shape[1] // 4
    blocks, more_blocks, tokens, more_tokens = (hits[:, part * count : (part + 1) * count] for part in range(4))
    gained = more_tokens - tokens
    columns = (
        blocks,
        tokens,
        tokens / counted.of_tokens,
        # Of a ceiling of nothing, nothing is missed.
        (tokens + counted.has_no_ceiling) / counted.of_ceiling,
        more_blocks - blocks,
        gained,
        gained / counted.of_tokens,
    )
    # All at once, in a quarter of the time that Python takes to write its floats.
    written = to_json([row for column in columns for row in column.tolist()]).decode()
    return written[2:-2].split("],[")


def _texts(capacity_gb: Sequence[float]) -> list[str]:
    """What stands before each number, or list of numbers, of a summary, and before its end."""
    return [
        '{"requests":',
        ',"total_input_tokens":',
        f',"capacity_gb":{to_json(list(map(float, capacity_gb))).decode()},"total_hit_blocks":[',
        '],"total_hit_tokens":[',
        '],"hit_rates":[',
        '],"of_ceiling":[',
        '],"gain_per_gb":{"hit_blocks":[',
        '],"hit_tokens":[',
        '],"hit_rates":[',
        ']},"ceiling":{"hit_blocks":',
        ',"hit_tokens":',
        ',"hit_rate":',
        "}",
    ]


@lru_cache(maxsize=16)
def _ends(instance_ids: Sequence[str]) -> Sequence[str]:
    """How the summaries of instances end, and what separates them."""
    ends = [f',"instance_id":{to_json(instance_id).decode()}}},' for instance_id in instance_ids]
    return [*ends[:-1], *(end[:-1] for end in ends[-1:])]
