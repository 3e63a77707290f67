from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.archive.chain import Chain
from service.archive.merge_rule import MergeRule, Parts
from service.archive.segment import SegmentInfo
from tests.chains import CHAIN, ENDS


def segment(base: int, end: int, gap_end: int | None = None) -> SegmentInfo:
    return SegmentInfo(CHAIN, base, end, end - (gap_end or base), base, end, gap_end)


def chain(*ends: int, gaps: tuple[int, ...] = ()) -> Chain:
    bases = pairwise([0, *ends])
    return Chain.of(CHAIN, [segment(base, end, base + 1 if base in gaps else None) for base, end in bases])


def chosen(rule: MergeRule, chain: Chain) -> list[tuple[int, int]]:
    return [(parts[0].base_offset, parts[-1].end_offset) for parts in rule.choose(chain, lambda _: True)]


def test_small_segments_are_merged_by_cells_that_are_full() -> None:
    by_twos = chain(*range(2, 40, 2))
    assert chosen(MergeRule(rows=16, parts=4), by_twos) == [(0, 16), (16, 32)]
    assert chosen(MergeRule(rows=31, parts=4), by_twos) == [(0, 16), (16, 32)]
    # The largest cell is not full, so its halves are looked at.
    assert chosen(MergeRule(rows=32, parts=4), by_twos) == [(0, 32)]
    assert chosen(MergeRule(rows=64, parts=4), by_twos) == [(0, 32)]


def test_large_segments_and_few_are_left() -> None:
    assert chosen(MergeRule(rows=16, parts=2), chain(*range(16, 160, 16))) == []
    assert chosen(MergeRule(rows=16, parts=4), chain(4, 8, 16, 20, 24, 32, 48)) == []


def test_a_large_segment_is_not_written_again_for_small_ones() -> None:
    assert chosen(MergeRule(rows=64, parts=4), chain(40, *range(42, 68, 2))) == [(40, 64)]
    assert chosen(MergeRule(rows=64, parts=4), chain(16, 32, *range(34, 68, 2))) == [(0, 64)]


def test_the_last_segment_is_never_merged() -> None:
    assert chosen(MergeRule(rows=16, parts=2), chain(8, 16)) == []
    assert chosen(MergeRule(rows=16, parts=2), chain(8, 16, 24)) == [(0, 16)]
    assert chosen(MergeRule(rows=16, parts=2), chain(8)) == []
    assert chosen(MergeRule(rows=16, parts=2), Chain(CHAIN)) == []


def test_nothing_is_merged_over_a_gap_or_a_hole() -> None:
    assert chosen(MergeRule(rows=16, parts=2), chain(4, 8, 12, 16, 20, gaps=(8,))) == [(0, 8), (8, 16)]
    holed = Chain.of(CHAIN, [segment(0, 4), segment(4, 8), segment(9, 12), segment(12, 16), segment(16, 20)])
    assert chosen(MergeRule(rows=16, parts=2), holed) == [(0, 8), (9, 16)]


def test_what_is_too_young_waits_and_the_rest_is_merged_in_smaller_cells() -> None:
    by_twos = chain(*range(2, 36, 2))
    young = by_twos.segments[7]
    rule = MergeRule(rows=32, parts=4)
    found = [(parts[0].base_offset, parts[-1].end_offset) for parts in rule.choose(by_twos, lambda one: one != young)]
    assert found == [(0, 8), (16, 32)]


def test_no_rows_merge_nothing() -> None:
    assert chosen(MergeRule(rows=0, parts=2), chain(1, 2, 3, 4, 5)) == []


def merged(segments: tuple[SegmentInfo, ...], parts: Parts) -> tuple[SegmentInfo, ...]:
    whole = replace(parts[0], end_offset=parts[-1].end_offset, rows=sum(part.rows for part in parts))
    return tuple(whole if one == parts[0] else one for one in segments if one == parts[0] or one not in parts)


RULES = st.builds(MergeRule, st.sampled_from([8, 16, 64]), st.integers(2, 5))


@given(ENDS, st.integers(0, 80), st.lists(st.tuples(RULES, st.integers(0, 80)), min_size=1, max_size=6))
def test_whatever_is_merged_at_whatever_time_covers_or_is_covered_or_is_apart(
    ends: list[int], seen: int, looks: list[tuple[MergeRule, int]]
) -> None:
    """Of any two merges, from views of any age and under any settings; what makes several at once safe."""
    every: set[tuple[int, int]] = set()
    segments: tuple[SegmentInfo, ...] = ()
    known = 0
    for rule, more in looks:
        known = max(known, more)
        segments += tuple(
            one for one in chain(*ends).segments if not segments or one.base_offset >= segments[-1].end_offset
        )[:known]
        view = Chain.of(CHAIN, segments)
        for number, parts in enumerate(rule.choose(view, lambda _: True)):
            every.add((parts[0].base_offset, parts[-1].end_offset))
            if (seen + number) % 2:  # some only are done
                segments = merged(segments, parts)
    for low, high in every:
        for other_low, other_high in every:
            apart = high <= other_low or other_high <= low
            assert apart or (low <= other_low and other_high <= high) or (other_low <= low and high <= other_high)


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_a_long_chain_becomes_short_and_each_fact_is_merged_a_few_times(parts: int) -> None:
    rule = MergeRule(rows=2**12, parts=parts)
    segments: tuple[SegmentInfo, ...] = ()
    written = 0
    count = 3 * 2**12 // 4
    for number in range(count):
        segments += (segment(4 * number, 4 * number + 4),)
        for group in list(rule.choose(Chain(CHAIN, segments), lambda _: True)):
            written += sum(part.rows for part in group)
            segments = merged(segments, group)
    assert Chain.of(CHAIN, segments).faults == ()
    assert len(segments) <= 3 * parts + 10 * (parts - 1)
    assert written / (4 * count) <= {2: 10, 4: 5, 8: 3.4}[parts]
