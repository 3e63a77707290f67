"""The open tail: every fact once and in order, whole or split, in few chunks."""

from __future__ import annotations

import pytest

from service.api.reach import Reach
from service.api.rows import FactRows
from service.api.tail import Tail, TailChunk
from tests.histories import fact, rows_of

SIZES = [1, 4094, 1, 3, 5000, 2, 1, 1]


def chunk_of(size: int, offset: int) -> TailChunk:
    facts = [fact(offset + row, (1, 1), instance="ab"[row % 2]) for row in range(size)]
    rows = rows_of(facts, offset, step=2)
    return TailChunk(FactRows.of(rows.facts), rows.fact_offsets)


@pytest.fixture(scope="module")
def tail() -> Tail:
    made, offset = Tail(), 10
    for size in SIZES:
        made = made.plus(chunk_of(size, offset))
        offset += 2 * size
    return made


def offsets(*tails: Tail) -> list[int]:
    return [int(offset) for tail in tails for chunk in tail.chunks for offset in chunk.offsets]


def test_an_empty_tail() -> None:
    assert (Tail().facts, Tail().reach, Tail().chunks) == (0, None, ())
    assert Tail().split(5) == (Tail(), Tail())


def test_it_holds_every_fact_once(tail: Tail) -> None:
    assert tail.facts == sum(SIZES)
    assert offsets(tail) == list(range(10, 10 + 2 * sum(SIZES), 2))
    assert sum(int(chunk.sums.requests.sum()) for chunk in tail.chunks) == sum(SIZES)
    assert tail.reach == Reach(10 + 2 * sum(SIZES) - 1, 10, max(int(one.rows.times_ns.max()) for one in tail.chunks))


@pytest.mark.parametrize("before", [0, 1, 2, 4095, 4100, 4101, sum(SIZES) - 1, sum(SIZES)])
def test_a_split_shares_the_facts_out_by_offset(tail: Tail, before: int) -> None:
    first, second = tail.split(10 + 2 * before)
    assert (first.facts, second.facts) == (before, sum(SIZES) - before)
    assert offsets(first, second) == offsets(tail)
    for part in (first, second):
        assert sum(int(chunk.sums.requests.sum()) for chunk in part.chunks) == part.facts


def test_small_batches_become_few_chunks() -> None:
    tail = Tail()
    for number in range(1000):
        tail = tail.plus(chunk_of(1, 2 * number))
        assert len(tail.chunks) <= (number + 1).bit_length()
    assert offsets(tail) == list(range(0, 2000, 2))
