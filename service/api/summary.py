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
_EXACT_IN_FLOATS = 2**53  # a quotient of integers up to here is rounded once

_Numbers = NDArray[Any]
"""int64, or Python's integers where 64 bits, or floats for their quotients, may not do."""


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
    """Sums at the capacities of a question: JSON of `schemas.answers.Summary`.

    A call names tens of instances, and making their models took ten times as long as reading off their hits.

    Attributes:
        total: over all groups.
        instances: by instance id, in its order.
    """

    total: str
    instances: dict[str, str]

    @classmethod
    def of(cls, question: Question, selection: Selection, instance_ids: Collection[str] = ()) -> Summaries:
        """Answer a question.

        Args:
            question: what to read off.
            selection: the sums.
            instance_ids: which instances are named, also without a fact; none: those with one.
        """
        numbers = _numbers(question, selection)
        known = list(selection.keyed.of_instance)
        by_instance = np.add.reduceat(numbers, selection.keyed.instance_starts, axis=0) if known else numbers
        total = numbers.sum(axis=0, keepdims=True)
        named = known
        if instance_ids:
            named = sorted(set(instance_ids))
            places = {instance_id: place for place, instance_id in enumerate(known)}
            by_instance = np.concatenate([by_instance, np.zeros_like(total)])  # the last is that of no facts
            by_instance = by_instance[[places.get(instance_id, -1) for instance_id in named]]
        template = _template(question.capacity_gb)
        rows = _rows(np.concatenate([total, by_instance]), len(question.capacity_gb))
        # All numbers at once, in a quarter of the time that Python takes to write its floats.
        numerals = to_json(rows.ravel().tolist()).decode()[1:-1].split(",")
        width = rows.shape[1]
        texts = [template % tuple(numerals[first : first + width]) for first in range(0, len(numerals), width)]
        return cls(texts[0], dict(zip(named, texts[1:], strict=True)))


def _numbers(question: Question, selection: Selection) -> _Numbers:
    """Requests, tokens, ceiling blocks and tokens, hit blocks by capacity, then hit tokens: integers[N, 4 + 4 K]."""
    groups = selection.keyed
    ceilings, hits = selection.ceilings, selection.hits(question.capacity_blocks(groups))
    sizes = groups.block_size_tokens
    most = max(
        sum(selection.input_tokens.tolist()),
        sum(ceiling * size for ceiling, size in zip(ceilings.tolist(), sizes.tolist(), strict=True)),
    )
    dtype = np.int64 if most < _EXACT_IN_FLOATS else object
    count = hits.shape[1]
    numbers = np.empty((len(groups), 4 + 2 * count), dtype)
    numbers[:, 0], numbers[:, 1], numbers[:, 2] = selection.requests, selection.input_tokens, ceilings
    numbers[:, 4 : 4 + count] = hits
    np.multiply(numbers[:, 2], sizes, out=numbers[:, 3])
    np.multiply(numbers[:, 4 : 4 + count], sizes[:, np.newaxis], out=numbers[:, 4 + count :])
    return numbers


def _template(capacity_gb: Sequence[float]) -> str:
    """A summary without its numbers, which are those of `_rows`."""
    column = f"[{','.join(['%s'] * len(capacity_gb))}]"
    return (
        f'{{"requests":%s,"total_input_tokens":%s,"capacity_gb":{to_json(list(map(float, capacity_gb))).decode()},'
        f'"total_hit_blocks":{column},"total_hit_tokens":{column},"hit_rates":{column},"of_ceiling":{column},'
        f'"gain_per_gb":{{"hit_blocks":{column},"hit_tokens":{column},"hit_rates":{column}}},'
        f'"ceiling":{{"hit_blocks":%s,"hit_tokens":%s,"hit_rate":%s}}}}'
    )


def _rows(numbers: _Numbers, count: int) -> NDArray[np.object_]:
    """The numbers of a summary of `count` capacities, for each row of `_numbers`, in the order of its text."""
    input_tokens, ceiling_tokens = numbers[:, 1], numbers[:, 3]
    hit_blocks, more_blocks, hit_tokens, more_tokens = (
        numbers[:, 4 + column * count : 4 + (column + 1) * count] for column in range(4)
    )
    gained = more_tokens - hit_tokens
    columns = [
        numbers[:, :2],
        hit_blocks,
        hit_tokens,
        _shares(hit_tokens, input_tokens, 0.0),
        _shares(hit_tokens, ceiling_tokens, 1.0),
        more_blocks - hit_blocks,
        gained,
        _shares(gained, input_tokens, 0.0),
        numbers[:, 2:4],
        _shares(numbers[:, 3:4], input_tokens, 0.0),
    ]
    rows = np.empty((len(numbers), sum(column.shape[1] for column in columns)), object)
    end = 0
    for column in columns:
        rows[:, end : (end := end + column.shape[1])] = column
    return rows


def _shares(tokens: _Numbers, of: _Numbers, without: float) -> _Numbers:
    nothing = of == 0
    shares: _Numbers = tokens / np.where(nothing, 1, of)[:, np.newaxis]
    shares[nothing] = without
    return shares
