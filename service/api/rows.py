"""Facts as far as sums need them, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from litehit.curve_table import CurveTable
from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch
from service.api.groups import GroupKey, Groups
from service.archive.archived_facts import curves_of


@dataclass(frozen=True, slots=True, eq=False)
class FactRows:
    """R facts.

    Attributes:
        groups: their groups; some may have no fact.
        codes: int64[R], the number of each one's group.
        times_ns: int64[R].
        input_token_lens: int64[R], tokens.
        hit_curves: R curves.
    """

    groups: Groups
    codes: Int64Array
    times_ns: Int64Array
    input_token_lens: Int64Array
    hit_curves: FlatCurves

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, facts: FactBatch) -> FactRows:
        """Those of a batch."""
        groups, codes = _number(
            pa.array(facts.instance_ids, pa.string()).dictionary_encode(), facts.block_size_tokens, facts.block_bytes
        )
        return cls(groups, codes, facts.timestamps_ns, facts.input_token_lens, facts.hit_curves)

    @classmethod
    def from_table(cls, table: pa.Table) -> FactRows:
        """Those of an Arrow table with columns of `FACT_SCHEMA`, the instances as dictionaries; one chunk, no nulls."""
        groups, codes = _number(
            table["instance_id"].unify_dictionaries().combine_chunks(),
            table["block_size_tokens"].to_numpy(),
            table["block_bytes"].to_numpy(),
        )
        return cls(
            groups,
            codes,
            table["timestamp_ns"].to_numpy(),
            table["input_token_len"].to_numpy(),
            curves_of(table),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[FactRows]) -> FactRows:
        """Append rows, at least one part, in the order given."""
        groups = Groups.of(key for part in parts for key in part.groups.keys)
        return cls(
            groups,
            np.concatenate([groups.numbers(part.groups.keys)[part.codes] for part in parts]),
            np.concatenate([part.times_ns for part in parts]),
            np.concatenate([part.input_token_lens for part in parts]),
            FlatCurves.concatenate([part.hit_curves for part in parts]),
        )

    def select(self, rows: Int64Array | NDArray[np.bool_]) -> FactRows:
        """Those of the given indices, or of a mask."""
        return FactRows(
            self.groups,
            self.codes[rows],
            self.times_ns[rows],
            self.input_token_lens[rows],
            self.hit_curves.select(rows),
        )

    def sums(self) -> CurveTable:
        """Summed by group; the codes are the groups' numbers."""
        return CurveTable.of(self.codes, self.input_token_lens, self.hit_curves, len(self.groups))


def _number(instances: Any, block_size_tokens: Int64Array, block_bytes: Int64Array) -> tuple[Groups, Int64Array]:
    """The groups of R facts, and each one's number: int64[R]."""
    names = instances.dictionary.to_pylist()
    codes = instances.indices.to_numpy().astype(np.int64)
    sizes, size_codes = _distinct(block_size_tokens)
    charges, charge_codes = _distinct(block_bytes)
    if len(sizes) == len(charges) == 1:  # most often
        keys = [GroupKey(name, sizes[0], charges[0]) for name in names]
    else:
        codes = (codes * len(sizes) + size_codes) * len(charges) + charge_codes
        occurring, codes = np.unique(codes, return_inverse=True)
        rest, charge_places = np.divmod(occurring, max(1, len(charges)))
        name_places, size_places = np.divmod(rest, max(1, len(sizes)))
        places = zip(name_places.tolist(), size_places.tolist(), charge_places.tolist(), strict=True)
        keys = [GroupKey(names[name], sizes[size], charges[charge]) for name, size, charge in places]
    groups = Groups.of(keys)
    return groups, groups.numbers(keys)[codes]


def _distinct(column: Int64Array) -> tuple[list[int], Int64Array]:
    """The values of a column, and the place of each row's among them: int64[R], or int64[1] where all are equal."""
    if len(column) and (column == column[0]).all():
        return [int(column[0])], np.zeros(1, np.int64)
    values, places = np.unique(column, return_inverse=True)
    return values.tolist(), places
