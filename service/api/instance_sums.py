"""What a selection counts of each instance, whatever capacity is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from litehit.curves import Int64Array
from service.api.groups import Groups

Integers: TypeAlias = NDArray[Any]
"""int64, or Python's integers where 64 bits, or floats for their quotients, may not do."""

_EXACT_IN_FLOATS = 2**53  # a quotient of integers up to here is rounded once


@dataclass(frozen=True, eq=False)
class InstanceSums:
    """Sums over all groups, then over those of each of I instances.

    Attributes:
        instance_ids: I ids, ascending.
        starts: int64[I], the first group of each; None where each has one.
        requests, input_tokens, ceiling_blocks, ceiling_tokens: integers[1 + I].
    """

    instance_ids: tuple[str, ...]
    starts: Int64Array | None
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
        starts = None if len(groups.of_instance) == len(groups) else groups.instance_starts
        blocks = ceilings.astype(dtype)
        counted = np.array([requests, input_tokens, blocks, blocks * sizes], dtype).T
        return cls(tuple(groups.of_instance), starts, *_summed(counted, starts).T)

    @cached_property
    def of_tokens(self) -> Integers:
        """What hit tokens are divided by for a hit rate: integers[1 + I, 1]; 1 instead of 0, of which none is hit."""
        divisors: Integers = np.maximum(self.input_tokens, 1)[:, np.newaxis]
        return divisors

    @cached_property
    def of_ceiling(self) -> Integers:
        """The same for the share of the ceiling."""
        divisors: Integers = np.maximum(self.ceiling_tokens, 1)[:, np.newaxis]
        return divisors

    @cached_property
    def has_no_ceiling(self) -> Integers:
        """1 where the ceiling is 0, else 0: integers[1 + I, 1]."""
        flags: Integers = (self.ceiling_tokens == 0).astype(self.dtype)[:, np.newaxis]
        return flags

    @cached_property
    def numerals(self) -> Sequence[Sequence[str]]:
        """Requests, tokens, blocks, tokens and hit rates of the ceilings, as JSON: 1 + I texts of each."""
        rates = self.ceiling_tokens / self.of_tokens[:, 0]
        columns = (self.requests, self.input_tokens, self.ceiling_blocks, self.ceiling_tokens, rates)
        return [to_json(column.tolist()).decode()[1:-1].split(",") for column in columns]

    @property
    def dtype(self) -> Any:
        """The type of its numbers, which does for all that is added up to them."""
        return self.requests.dtype

    def summed(self, of_groups: Integers) -> Integers:
        """Numbers of N groups, added up: integers[1 + I, M] for integers[N, M]."""
        return _summed(of_groups, self.starts)

    def chosen(self, instance_ids: Sequence[str]) -> tuple[InstanceSums, list[int]]:
        """The same of other instances, some without a fact, and the row of each, -1 for one that is not here."""
        rows = [0, *(self._rows.get(instance_id, -1) for instance_id in instance_ids)]
        sums = (
            np.append(one, np.zeros(1, self.dtype))[rows]
            for one in (self.requests, self.input_tokens, self.ceiling_blocks, self.ceiling_tokens)
        )
        return InstanceSums(tuple(instance_ids), None, *sums), rows

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {instance_id: place for place, instance_id in enumerate(self.instance_ids, 1)}


def _summed(of_groups: Integers, starts: Int64Array | None) -> Integers:
    by_instance = of_groups if starts is None else np.add.reduceat(of_groups, starts, axis=0)
    return np.concatenate([of_groups.sum(axis=0, keepdims=True), by_instance])
