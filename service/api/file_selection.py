"""Facts of files summed as the index sums those of the service, for the same answers without it."""

from __future__ import annotations

from collections.abc import Iterable

from litehit.curve_table import CurveTable
from litehit.facts import FactBatch
from service.api.groups import Groups
from service.api.rows import FactRows
from service.api.selection import Part, Selection

_MERGED_AT = 64
"""Batches summed into one at once: what is in memory is their breakpoints, and each is copied a few times."""


def select_facts(batches: Iterable[FactBatch]) -> Selection:
    """Sum facts, which are read once.

    Raises:
        FactsError: a row is malformed.
    """
    summed: list[tuple[Groups, CurveTable]] = []
    for batch in batches:
        rows = FactRows.of(batch)
        summed.append((rows.groups, rows.sums()))
        if len(summed) == _MERGED_AT:
            summed = [_add_up(summed)]
    groups, table = _add_up(summed)
    return Selection.of(groups, [Part(table, table.codes)], ())


def _add_up(summed: Iterable[tuple[Groups, CurveTable]]) -> tuple[Groups, CurveTable]:
    listed = list(summed)
    groups = Groups.of(key for some, _ in listed for key in some.keys)
    return groups, CurveTable.sum([table.recoded(groups.numbers(some.keys)[table.codes]) for some, table in listed])
