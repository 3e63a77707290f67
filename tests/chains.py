"""Chains of segments for tests of the archive's upkeep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from service.archive.archived_facts import ArchivedFacts
from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.segment import ChainKey, SegmentInfo, describe, read_table
from service.archive.segment_writer import encode
from service.archive.store import Store
from tests.archive_facts import made_fact, made_facts

CHAIN = ChainKey("litehit.facts", "g", 0)


def put(store: Store, base: int, end: int, gap_end: int | None = None, chain: ChainKey = CHAIN) -> SegmentInfo:
    """A segment whose every fifth offset, and its last, holds no fact; it must have room for one that does."""
    first = base if gap_end is None else gap_end
    held = [offset for offset in range(first, end) if offset % 5 or offset == first]
    facts = made_facts(end - first, first)
    index = np.array([offset - first for offset in held])
    facts = ArchivedFacts(facts.facts.select(index), facts.fact_offsets[index], facts.source_offsets[index])
    table = facts.table
    info = describe(chain, base, end, table, gap_end)
    store.create(info.path, encode(info, table))
    return info


def put_all(store: Store, ends: Iterable[int], gaps: Iterable[int] = (), chain: ChainKey = CHAIN) -> list[SegmentInfo]:
    """Segments that end at these offsets; those whose number is in `gaps` begin with a gap of one offset, with room."""
    infos, base, wanted = [], 0, set(gaps)
    for number, end in enumerate(ends):
        gap_end = base + 1 if number in wanted and end - base > 1 else None
        infos.append(put(store, base, end, gap_end, chain))
        base = end
    return infos


def chain_of(store: Store, key: ChainKey = CHAIN) -> Chain:
    """As a reader that begins now sees it."""
    catalog = Catalog(store)
    catalog.refresh()
    return catalog.view.chain(key)


def offsets_of(store: Store, segments: Sequence[SegmentInfo]) -> list[int]:
    """The offsets of all facts, each of which must be the one made for its offset."""
    offsets: list[int] = []
    for info in segments:
        found, table = read_table(store, info.path)
        assert found == info
        facts = ArchivedFacts.from_table(table)
        assert list(facts.facts) == [made_fact(offset) for offset in facts.fact_offsets.tolist()]
        assert facts.source_offsets.tolist() == [2 * offset for offset in facts.fact_offsets.tolist()]
        offsets += facts.fact_offsets.tolist()
    return offsets


def names(store: Store) -> list[int]:
    """The base offsets of the files."""
    return [int(file.path.rpartition("/")[2].partition(".")[0]) for file in store.list()]


ENDS = st.sets(st.integers(1, 80), min_size=1, max_size=30).map(sorted)
"""Ends of consecutive segments from 0 on."""
