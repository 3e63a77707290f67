"""What instances count, whatever is asked: exact where 64 bits or floats would not do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from service.api.groups import GroupKey, Groups
from service.api.instance_sums import InstanceSums

GROUPS = Groups.of([GroupKey("a", 4, 1), GroupKey("a", 8, 1), GroupKey("b", 4, 1), GroupKey("c", 4, 1)])


def sums(*tokens: int) -> InstanceSums:
    return InstanceSums.of(GROUPS, np.array([1, 2, 3, 4]), np.array(tokens), np.array([5, 6, 7, 0]))


def test_the_total_comes_first_and_groups_of_an_instance_are_added_up() -> None:
    made = sums(100, 100, 50, 10)
    assert made.instance_ids == ("a", "b", "c")
    assert made.requests.tolist() == [10, 3, 3, 4]
    assert made.input_tokens.tolist() == [260, 200, 50, 10]
    assert made.ceiling_blocks.tolist() == [18, 11, 7, 0]
    assert made.ceiling_tokens.tolist() == [96, 68, 28, 0]
    assert made.dtype == np.int64
    assert [list(map(json.loads, column)) for column in made.numerals] == [
        [10, 3, 3, 4],
        [260, 200, 50, 10],
        [18, 11, 7, 0],
        [96, 68, 28, 0],
        [96 / 260, 68 / 200, 28 / 50, 0.0],
    ]


@pytest.mark.parametrize("tokens", [2**53, 2**62])
def test_large_sums_are_pythons_integers(tokens: int) -> None:
    made = sums(tokens, tokens - 1, tokens, 1)
    assert made.dtype == object
    assert made.input_tokens.tolist() == [3 * tokens, 2 * tokens - 1, tokens, 1]
    assert json.loads(made.numerals[4][1]) == 68 / (2 * tokens - 1)


@pytest.mark.parametrize("tokens", [1, 2**60])
def test_chosen_instances_may_have_no_facts(tokens: int) -> None:
    made = sums(tokens, 1, 1, 1)
    chosen, rows = made.chosen(["b", "x"])
    assert rows == [0, 2, -1]
    assert chosen.instance_ids == ("b", "x")
    assert chosen.dtype == made.dtype
    assert chosen.requests.tolist() == [10, 3, 0]
    assert chosen.ceiling_tokens.tolist() == [96, 28, 0]
    assert chosen.has_no_ceiling.ravel().tolist() == [0, 0, 1]
    assert chosen.of_tokens.ravel().tolist()[-1] == 1


def test_of_nothing() -> None:
    none = np.empty(0, np.int64)
    made = InstanceSums.of(Groups(), none, none, none)
    assert made.instance_ids == ()
    assert made.summed(np.empty((0, 3), np.int64)).tolist() == [[0, 0, 0]]
    assert made.numerals == [["0"], ["0"], ["0"], ["0"], ["0.0"]]
