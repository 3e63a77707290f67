"""What a selection counts of each instance, whatever capacity is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from litehit.curves import Int64Array
from litehit.jit import interpreted
from litehit.summary_kernels import COUNTS, RATES, summarise
from service.api.groups import Groups

Integers: TypeAlias = NDArray[Any]
"""int64, or Python's integers where 64 bits, or floats for their quotients, may not do."""

_EXACT_IN_FLOATS = 2**53  # a quotient of integers up to here is rounded once


@dataclass(frozen=True, eq=False)
class InstanceSums:
    """Sums over all groups, then over those of each of I instances.

    Attributes:
        instance_ids: I ids, ascending.
        rows: int64[N], for each group the row of its instance, from 1; 0 for one that counts in the total alone.
        worths: integers[N], tokens of a block of each group.
        requests, input_tokens, ceiling_blocks, ceiling_tokens: integers[1 + I].
    """

    instance_ids: tuple[str, ...]
    rows: Int64Array
    worths: Integers
    requests: Integers
    input_tokens: Integers
    ceiling_blocks: Integers
    ceiling_tokens: Integers

    @classmethod
    def of(cls, groups: Groups, requests: Int64Array, input_tokens: Int64Array, ceilings: Int64Array) -> InstanceSums:
        """Add up what N groups count: int64[N] requests, tokens, and hit blocks at infinite capacity."""
        sizes = groups.block_size_tokens
        most = max(
            sum(input_tokens.tolist()),
            sum(ceiling * size for ceiling, size in zip(ceilings.tolist(), sizes.tolist(), strict=True)),
        )
        dtype = np.int64 if most < _EXACT_IN_FLOATS else object
        blocks, worths = ceilings.astype(dtype), sizes.astype(dtype)
        rows = groups.instance_places + 1
        sums = np.zeros((1 + len(groups.of_instance), 4), dtype)
        counted = np.array([requests, input_tokens, blocks, blocks * worths], dtype).T
        np.add.at(sums, rows, counted)
        sums[0] = counted.sum(axis=0)
        return cls(tuple(groups.of_instance), rows, worths, *np.ascontiguousarray(sums.T))

    @cached_property
    def begins(self) -> Sequence[str]:
        """How the summary of each row begins, up to its capacities: 1 + I texts of JSON."""
        counted = zip(self.requests.tolist(), self.input_tokens.tolist(), strict=True)
        return [f'{{"requests":{requests},"total_input_tokens":{tokens}' for requests, tokens in counted]

    @cached_property
    def ends(self) -> Sequence[str]:
        """How it ends, behind the last rate: likewise, with a comma behind all instances but the last."""
        ceilings = zip(self.ceiling_blocks.tolist(), self.ceiling_tokens.tolist(), strict=True)
        rates = to_json((self.ceiling_tokens / np.maximum(self.input_tokens, 1)).tolist()).decode()[1:-1].split(",")
        names = ["}", *(f',"instance_id":{to_json(instance_id).decode()}}},' for instance_id in self.instance_ids)]
        names[-1] = names[-1].rstrip(",")
        return [
            f']}},"ceiling":{{"hit_blocks":{blocks},"hit_tokens":{tokens},"hit_rate":{rate}}}{name}'
            for (blocks, tokens), rate, name in zip(ceilings, rates, names, strict=True)
        ]

    @property
    def dtype(self) -> Any:
        """The type of its numbers, which does for all that is added up to them."""
        return self.requests.dtype

    def summarised(self, hits: Int64Array) -> tuple[Integers, NDArray[np.float64]]:
        """Counts and rates of hit blocks, int64[N, 2 K]: integers[1 + I, 4 K] and float64[1 + I, 3 K].

        See `litehit.summary_kernels` for which they are.
        """
        slots = hits.shape[1] // 2
        counts = np.zeros((len(self.requests), COUNTS * slots), self.dtype)
        rates = np.empty((len(self.requests), RATES * slots))
        add_up = summarise if self.dtype == np.int64 else interpreted(summarise)
        exact = hits.astype(self.dtype, copy=False)
        add_up(self.rows, exact, self.worths, self.input_tokens, self.ceiling_tokens, counts, rates)
        return counts, rates

    def chosen(self, instance_ids: Sequence[str]) -> InstanceSums:
        """The same of other instances, some without a fact; the total stays."""
        known = {instance_id: row for row, instance_id in enumerate(self.instance_ids, 1)}
        before = [0, *(known.get(instance_id, -1) for instance_id in instance_ids)]
        rows = np.zeros(len(self.requests) + 1, np.int64)  # the last is that of instances without a fact
        rows[before] = np.arange(len(before))
        sums = (
            np.append(one, np.zeros(1, self.dtype))[before]
            for one in (self.requests, self.input_tokens, self.ceiling_blocks, self.ceiling_tokens)
        )
        return InstanceSums(tuple(instance_ids), rows[self.rows], self.worths, *sums)
