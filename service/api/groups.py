"""Groups: the facts whose curves are added up in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from litehit.curves import Int64Array


class GroupKey(NamedTuple):
    """What facts must share for their curves to be added up in blocks."""

    instance_id: str
    block_size_tokens: int
    block_bytes: int


@dataclass(frozen=True)
class Groups:
    """Keys in order, numbered by their place. It never changes: further keys make new groups.

    Attributes:
        keys: G keys, ascending.
    """

    keys: tuple[GroupKey, ...] = ()

    @classmethod
    def of(cls, keys: Iterable[GroupKey]) -> Groups:
        """Number keys, which may come in any order and more than once."""
        return cls(tuple(sorted(set(keys))))

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def places(self) -> Mapping[GroupKey, int]:
        """The number of each key."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def block_size_tokens(self) -> Int64Array:
        """Of each key: int64[G]."""
        return np.array([key.block_size_tokens for key in self.keys], np.int64)

    @cached_property
    def block_bytes(self) -> Int64Array:
        """Of each key: int64[G]."""
        return np.array([key.block_bytes for key in self.keys], np.int64)

    @cached_property
    def of_instance(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each instance's keys."""
        numbers: dict[str, list[int]] = {}
        for number, key in enumerate(self.keys):
            numbers.setdefault(key.instance_id, []).append(number)
        return numbers

    @cached_property
    def instance_places(self) -> Int64Array:
        """The place of each key's instance in the order of `of_instance`: int64[G]."""
        sizes = [len(numbers) for numbers in self.of_instance.values()]
        return np.repeat(np.arange(len(sizes)), np.array(sizes, np.int64))

    def including(self, keys: Sequence[GroupKey]) -> Groups:
        """With further keys; itself where it has them all."""
        return self if all(key in self.places for key in keys) else Groups.of((*self.keys, *keys))

    def numbers(self, keys: Sequence[GroupKey]) -> Int64Array:
        """The number of each of N keys, -1 for one that is not among them: int64[N]; ascending keys give ascending."""
        places = self.places
        return np.array([places.get(key, -1) for key in keys], np.int64)
