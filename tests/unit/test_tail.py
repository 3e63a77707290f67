"""The open tail: rows and sums agree, whether its batches are summed already or fresh, whole or split."""

from __future__ import annotations

import pytest

from service.api.tail import Reach, Tail
from tests.histories import fact, rows_of

SIZES = [1, 4094, 1, 3, 5000, 2]  # fresh batches are summed when they reach 4096 rows together


@pytest.fixture(scope="module")
def tail() -> Tail:
    made, offset = Tail(), 10
    for size in SIZES:
        facts = [fact(offset + row, (1, 1), instance="ab"[row % 2]) for row in range(size)]
        made = made.plus(rows_of(facts, offset, step=2))
        offset += 2 * size
    return made


def requests(tail: Tail) -> dict[str, int]:
    return {key.instance_id: group.requests for key, group in tail.sums().items()}


def test_an_empty_tail() -> None:
    assert (Tail().rows, Tail().reach, Tail().sums()) == (0, None, {})
    assert Tail().split(5) == (Tail(), Tail())


def test_sums_count_every_row_once(tail: Tail) -> None:
    assert tail.rows == sum(SIZES)
    assert sum(requests(tail).values()) == sum(SIZES)
    assert [len(facts) for facts in tail.fresh] == [2]
    assert tail.reach == Reach(10 + 2 * sum(SIZES) - 1, 10, 10 + 2 * sum(SIZES[:-1]) + 1)


@pytest.mark.parametrize("before", [0, 1, 2, 4095, 4100, 4101, sum(SIZES) - 1, sum(SIZES)])
def test_a_split_shares_the_rows_out_by_offset(tail: Tail, before: int) -> None:
    first, second = tail.split(10 + 2 * before)
    assert (first.rows, second.rows) == (before, sum(SIZES) - before)
    for part in (first, second):
        assert sum(requests(part).values()) == part.rows == sum(len(batch.rows) for batch in part.batches)
    offsets = [int(one) for part in (first, second) for batch in part.batches for one in batch.rows.fact_offsets]
    assert offsets == list(range(10, 10 + 2 * sum(SIZES), 2))
