"""A page of facts: bounded in lines, bytes and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from service.api.fact_log import FactLog, PinnedChain
from service.archive.archived_facts import ArchivedFacts
from service.archive.errors import FactsExpired
from service.archive.reader import FactFilter
from service.archive.segment import ChainKey

_PAGE_BYTES = 8 * 2**20
_PAGE_SECONDS = 2.0
_STEP = 1 << 20
"""Offsets looked at between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """Some facts.

    Attributes:
        lines: JSON of each, with its line end.
        offsets: of the next fact to look at in each chain.
        has_more: whether facts are left to look at now.
    """

    lines: Sequence[bytes]
    offsets: Mapping[ChainKey, int]
    has_more: bool


def read_page(
    log: FactLog,
    chains: Sequence[PinnedChain],
    wanted: FactFilter,
    offsets: Mapping[ChainKey, int],
    limit: int,
    clock: Callable[[], float] = time.monotonic,
) -> FactPage:
    """The facts that come next: chain by chain, each in the order of its offsets.

    Args:
        log: where they are read.
        chains: what there is.
        wanted: which of them.
        offsets: of the next fact of each chain; one that is not there begins at its first.
        limit: most facts; there are fewer where they are large, or where finding more takes long.
        clock: seconds that never go back.
    """
    reached = dict(offsets)
    lines: list[bytes] = []
    size = 0
    deadline = clock() + _PAGE_SECONDS
    for pinned in chains:
        position = reached.get(pinned.chain.key, 0)
        while position < pinned.end_offset and len(lines) < limit and size < _PAGE_BYTES and clock() <= deadline:
            end = min(position + _STEP, pinned.end_offset)
            try:
                for rows in log.read(pinned, replace(wanted, from_offset=position, to_offset=end)):
                    taken, position = _take(rows, limit - len(lines), _PAGE_BYTES - size)
                    lines += taken
                    size += sum(map(len, taken))
                    if len(lines) == limit or size >= _PAGE_BYTES:
                        break
                else:
                    position = end
            except FactsExpired as error:
                position = max(position, error.start_offset)
        reached[pinned.chain.key] = position
    has_more = any(reached[pinned.chain.key] < pinned.end_offset for pinned in chains)
    return FactPage(lines, reached, has_more)


def _take(rows: ArchivedFacts, limit: int, size: int) -> tuple[list[bytes], int]:
    """Lines of the first facts, and the offset behind them."""
    lines: list[bytes] = []
    for line in rows.facts.to_json():
        lines.append(line + b"\n")
        size -= len(lines[-1])
        if len(lines) == limit or size <= 0:
            break
    return lines, int(rows.fact_offsets[len(lines) - 1]) + 1
