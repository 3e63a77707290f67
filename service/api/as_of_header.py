"""Which facts an answer of lines is about, in a header of bounded length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from service.api.fact_log import PinnedChain

AS_OF = "LiteHit-As-Of"
OMITTED = "LiteHit-As-Of-Omitted"

MAX_LENGTH = 4000
"""Characters. Clients and proxies refuse longer headers: some from 8,190 characters of one line, or of all together."""

DESCRIPTIONS: dict[str, Any] = {
    AS_OF: {
        "description": "JSON: {topic: {generation: {partition: [start_offset, next_offset, ...]}}}, the facts looked "
        "at of each partition: all from `start_offset`, before which they expired, to before `next_offset`. What "
        "follows are pairs: the offsets from the first to before the second are missing, for no segment holds them; "
        "where the second is null, a file from the first on can't be read, and how many facts it holds is unknown",
        "schema": {"type": "string"},
    },
    OMITTED: {
        "description": f"how many partitions, those of the oldest generations first, {AS_OF} leaves out to stay short; "
        "absent where none",
        "schema": {"type": "integer"},
    },
}


def as_of_headers(chains: Sequence[PinnedChain]) -> dict[str, str]:
    """The headers.

    Args:
        chains: what there is, by generation in order of appearance.
    """
    shown: dict[str, dict[str, dict[str, list[Any]]]] = {}
    length = 0
    omitted = len(chains)
    for one in reversed(chains):
        key = one.chain.key
        partitions = shown.get(key.topic, {}).get(key.generation, {})
        unknown = [[offset, None] for offset in one.chain.unreadable_from]
        missing = [*map(list, one.chain.missing), *unknown]
        reach = {str(key.partition): [one.chain.start_offset, one.end_offset, *missing]}
        added = reach if partitions else {key.topic: {key.generation: reach}}
        length += len(_json(added))
        if length > MAX_LENGTH:
            break
        shown.setdefault(key.topic, {}).setdefault(key.generation, {}).update(reach)
        omitted -= 1
    return {AS_OF: _json(shown), **({OMITTED: str(omitted)} if omitted else {})}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
