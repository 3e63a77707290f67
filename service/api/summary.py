"""From sums to the numbers of an answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.projector import INFINITE, HitCurveProjector
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

    def capacity_blocks(self, charges: Int64Array) -> Int64Array:
        """The capacities, then each with a GB more, in blocks: int64[N, 2 K] for N charges in bytes."""
        asked = [*map(HitCurveProjector.capacity_bytes, self.capacity_gb)]
        grown = [capacity if capacity == INFINITE else capacity + _ONE_GB for capacity in asked]
        if self.block_bytes is not None:
            charges = np.full(len(charges), self.block_bytes)
        distinct, places = np.unique(charges, return_inverse=True)
        blocks = [HitCurveProjector.capacities_blocks([*asked, *grown], charge) for charge in distinct.tolist()]
        return np.array(blocks, np.int64).reshape(len(blocks), len(asked) * 2)[places]


@dataclass(frozen=True, slots=True)
class Summaries:
    """Sums at the capacities of a question.

    Attributes:
        total: over all groups.
        instances: by instance id, in its order.
    """

    total: dict[str, Any]
    instances: dict[str, dict[str, Any]]

    @classmethod
    def of(cls, question: Question, selection: Selection, instance_ids: Collection[str] = ()) -> Summaries:
        """Answer a question.

        Args:
            question: what to read off.
            selection: the sums.
            instance_ids: which instances are named, also without a fact; none: those with one.

        Returns:
            Values are the fields of `schemas.answers.Summary`.
        """
        capacity_gb = list(map(float, question.capacity_gb))
        rows: dict[str, list[int]] = {}
        numbers = _numbers(question, selection)
        if len(numbers):
            by_instance = np.add.reduceat(numbers, selection.keyed.instance_starts, axis=0)
            rows = dict(zip(selection.keyed.of_instance, by_instance.tolist(), strict=True))
        nothing = [0] * numbers.shape[1]
        named = sorted(set(instance_ids)) or rows
        return cls(
            _summary(capacity_gb, numbers.sum(axis=0).tolist()),
            {instance_id: _summary(capacity_gb, rows.get(instance_id, nothing)) for instance_id in named},
        )


def _numbers(question: Question, selection: Selection) -> NDArray[Any]:
    """Requests, tokens, ceiling blocks and tokens, hit blocks by capacity, then hit tokens: integers[N, 4 + 4 K]."""
    groups = selection.keyed
    hits, ceilings = selection.hits(question.capacity_blocks(groups.block_bytes)), selection.ceilings
    sizes = groups.block_size_tokens
    # Python's integers where 64 bits may not do.
    largest = sum(ceiling * size for ceiling, size in zip(ceilings.tolist(), sizes.tolist(), strict=True))
    dtype = np.int64 if largest < 2**63 else object
    blocks = np.column_stack([ceilings, hits]).astype(dtype)
    tokens = blocks * sizes.astype(dtype)[:, np.newaxis]
    return np.column_stack(
        [selection.requests, selection.input_tokens, blocks[:, 0], tokens[:, 0], blocks[:, 1:], tokens[:, 1:]]
    )


def _summary(capacity_gb: list[float], row: list[int]) -> dict[str, Any]:
    requests, input_tokens, ceiling_blocks, ceiling_tokens = row[:4]
    count = len(capacity_gb)
    hit_blocks, more_blocks, hit_tokens, more_tokens = (
        row[4 + column * count : 4 + (column + 1) * count] for column in range(4)
    )
    gained_tokens = list(map(sub, more_tokens, hit_tokens))
    return {
        "requests": requests,
        "total_input_tokens": input_tokens,
        "capacity_gb": capacity_gb,
        "total_hit_blocks": hit_blocks,
        "total_hit_tokens": hit_tokens,
        "hit_rates": _shares(hit_tokens, input_tokens, 0.0),
        "of_ceiling": _shares(hit_tokens, ceiling_tokens, 1.0),
        "gain_per_gb": {
            "hit_blocks": list(map(sub, more_blocks, hit_blocks)),
            "hit_tokens": gained_tokens,
            "hit_rates": _shares(gained_tokens, input_tokens, 0.0),
        },
        "ceiling": {
            "hit_blocks": ceiling_blocks,
            "hit_tokens": ceiling_tokens,
            "hit_rate": ceiling_tokens / input_tokens if input_tokens else 0.0,
        },
    }


def _shares(tokens: list[int], of: int, without: float) -> list[float]:
    return [one / of for one in tokens] if of else [without] * len(tokens)
