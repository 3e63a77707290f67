from __future__ import annotations

from dataclasses import replace

import pytest

from service.archive.chain import Chain, Gap, Hole, Overlap
from service.archive.errors import ChainBroken, SegmentError
from service.archive.segment import ChainKey, SegmentInfo, segment_path

KEY = ChainKey("facts", "g", 0)


def segment(base: int, end: int) -> SegmentInfo:
    return SegmentInfo(KEY, base, end, end - base, base, end)


def test_segments_are_put_in_order() -> None:
    first, second, third = segment(0, 5), segment(5, 6), segment(6, 20)
    chain = Chain.of(KEY, [third, first, second])
    assert chain.segments == (first, second, third)
    assert chain.next_offset == 20
    assert chain.faults == ()


def test_without_segments_the_archive_begins_at_0() -> None:
    assert Chain(KEY).next_offset == 0


def test_holes_are_reported_and_do_not_move_the_end() -> None:
    chain = Chain.of(KEY, [segment(10, 20), segment(25, 30)])
    assert chain.holes == (Hole(0, 10), Hole(20, 25))
    assert chain.next_offset == 30
    assert chain.faults == (
        "facts/g/0: no segment covers offsets 0 to 10",
        "facts/g/0: no segment covers offsets 20 to 25",
    )


def test_a_segment_inside_another_is_superseded() -> None:
    large, inside, last = segment(0, 20), segment(5, 20), segment(20, 30)
    chain = Chain.of(KEY, [inside, large, last])
    assert chain.segments == (large, last)
    assert chain.superseded == (inside,)
    assert chain.next_offset == 30
    assert chain.faults == ()


def test_a_segment_inside_several_is_superseded_and_one_that_fills_a_hole_is_not() -> None:
    inside = segment(5, 25)
    assert Chain.of(KEY, [segment(0, 20), segment(20, 30), inside]).superseded == (inside,)
    chain = Chain.of(KEY, [segment(0, 20), segment(22, 30), inside])
    assert chain.superseded == ()
    assert chain.overlaps == (Overlap(inside, 20),)
    assert "not used" in chain.faults[-1]


def test_a_chain_begins_behind_what_expired() -> None:
    expired = [replace(segment(0, 20), rows=0, expired_rows=18), replace(segment(20, 30), rows=0, expired_rows=10)]
    chain = Chain.of(KEY, [*expired, segment(30, 40)])
    assert chain.segments == (segment(30, 40),)
    assert chain.expired == tuple(expired)
    assert (chain.start_offset, chain.expired_facts, chain.next_offset) == (30, 28, 40)
    assert chain.covering(10) is None
    assert chain.faults == ()
    emptied = Chain.of(KEY, [*expired, segment(10, 15)])
    assert emptied.superseded == (segment(10, 15),)
    assert (emptied.segments, emptied.next_offset, emptied.faults) == ((), 30, ())


def test_an_end_that_contradicts_itself_is_no_end() -> None:
    chain = Chain.of(KEY, [segment(0, 20), segment(10, 30)])
    assert chain.segments == (segment(0, 20),)
    with pytest.raises(ChainBroken, match="begins inside the segment before it"):
        _ = chain.next_offset


def test_a_damaged_last_segment_hides_the_end_and_an_earlier_one_does_not() -> None:
    damaged = SegmentError(segment_path(KEY, 5), "damaged: short")
    with pytest.raises(ChainBroken, match=r"the end of the archive is unknown: .*damaged: short"):
        _ = Chain.of(KEY, [segment(0, 5)], [damaged]).next_offset
    chain = Chain.of(KEY, [segment(0, 5), segment(10, 12)], [damaged])
    assert chain.next_offset == 12
    assert chain.holes == (Hole(5, 10),)
    assert chain.faults[-1] == str(damaged)


def test_gaps_are_data_and_no_faults() -> None:
    chain = Chain.of(KEY, [replace(segment(0, 20), gap_end=7), segment(20, 30), replace(segment(30, 40), gap_end=31)])
    assert chain.gaps == (Gap(0, 7), Gap(30, 31))
    assert chain.missing == ((0, 7), (30, 31))
    assert chain.faults == ()
    assert chain.next_offset == 40


def test_the_damaged_end_is_what_lies_behind_the_last_segment() -> None:
    before, after, later = (SegmentError(segment_path(KEY, base), "torn") for base in (5, 12, 14))
    chain = Chain.of(KEY, [segment(0, 5), segment(10, 12)], [before, after, later])
    assert chain.damaged_end == (after, later)
    assert Chain.of(KEY, [], [before]).damaged_end == (before,)
