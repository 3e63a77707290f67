"""The groups of a selection by instance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from service.api.groups import GroupKey
from service.api.selection import HitSums, Selection


def by_instance(selection: Selection, instance_ids: Iterable[str]) -> dict[str, Sequence[tuple[GroupKey, HitSums]]]:
    """Groups by instance_id, in its order: of those asked for, or else of those with a fact in the selection."""
    groups: dict[str, list[tuple[GroupKey, HitSums]]] = {instance_id: [] for instance_id in instance_ids}
    for key, sums in selection.groups:
        groups.setdefault(key.instance_id, []).append((key, sums))
    return dict(sorted(groups.items()))
