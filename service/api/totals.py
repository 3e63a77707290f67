"""Everything that is counted, summed by group: ready to be asked, cheap to add to and to take from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from litehit.curve_table import CurveTable
from litehit.curves import Int64Array
from service.api.groups import Groups

_GROWTH = 4
"""A layer is more than this many times as large as the next: few layers to ask, few merges of a fact."""


def _no_sums() -> Int64Array:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums of facts. They never change: what adds to them makes new ones.

    Adding a few facts to many must not copy the many, so the curves are kept in layers, each more than `_GROWTH` times
    as large as the next. A fact is merged a logarithmic number of times, and a question asks as many layers.

    Attributes:
        groups: G groups, also those of which nothing is left.
        requests, input_tokens: int64[G].
        layers: tables that make up the curves, the largest first; their codes are numbers of groups.
    """

    groups: Groups = field(default_factory=Groups)
    requests: Int64Array = field(default_factory=_no_sums)
    input_tokens: Int64Array = field(default_factory=_no_sums)
    layers: tuple[CurveTable, ...] = ()

    def plus(self, groups: Groups, table: CurveTable) -> Totals:
        """With further sums, whose codes are numbers of `groups`."""
        known = self._including(groups)
        table = table.recoded(known.groups.numbers(groups.keys)[table.codes])
        requests, input_tokens = known.requests.copy(), known.input_tokens.copy()
        table.add_counts(table.codes, requests, input_tokens)
        layers = list(known.layers)
        while layers and _size(layers[-1]) <= _GROWTH * _size(table):
            table = layers.pop() + table
        return Totals(known.groups, requests, input_tokens, (*layers, table) if len(table) else tuple(layers))

    def minus(self, groups: Groups, table: CurveTable) -> Totals:
        """Without sums that were added."""
        return self.plus(groups, table.negated())

    def has(self, instance_id: str) -> bool:
        """Whether it counts a fact of an instance."""
        return any(self.requests[number] for number in self.groups.of_instance.get(instance_id, ()))

    def instances(self) -> set[str]:
        """Those that it counts a fact of."""
        return {self.groups.keys[number].instance_id for number in np.flatnonzero(self.requests)}

    def _including(self, groups: Groups) -> Totals:
        joint = self.groups.including(groups.keys)
        if joint is self.groups:
            return self
        # Numbers ascend with the keys, so the codes stay in order.
        numbers = joint.numbers(self.groups.keys)
        requests, input_tokens = np.zeros(len(joint), np.int64), np.zeros(len(joint), np.int64)
        requests[numbers], input_tokens[numbers] = self.requests, self.input_tokens
        layers = tuple(layer.recoded(numbers[layer.codes]) for layer in self.layers)
        return replace(self, groups=joint, requests=requests, input_tokens=input_tokens, layers=layers)


def _size(table: CurveTable) -> int:
    return table.pieces + len(table)
