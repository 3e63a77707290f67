"""What instances count, whatever is asked: exact where 64 bits or floats would not do."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from service.api.groups import GroupKey, Groups
from service.api.instance_sums import InstanceSums

GROUPS = Groups.of([GroupKey("a", 4, 1), GroupKey("a", 8, 1), GroupKey("b", 4, 1), GroupKey("c", 4, 1)])
HITS = np.array([[1, 3], [2, 2], [4, 7], [0, 0]])
"""At a capacity and with a GB more."""


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
    counts, rates = made.summarised(HITS)
    assert counts.tolist() == [[7, 36, 5, 20], [3, 20, 2, 8], [4, 16, 3, 12], [0, 0, 0, 0]]
    assert rates.tolist() == [
        [36 / 260, 36 / 96, 20 / 260],
        [20 / 200, 20 / 68, 8 / 200],
        [16 / 50, 16 / 28, 12 / 50],
        [0.0, 1.0, 0.0],
    ]


def test_what_does_not_depend_on_the_capacity_is_written_once() -> None:
    made = sums(100, 100, 50, 10)
    assert list(made.begins) == [
        '{"requests":10,"total_input_tokens":260',
        '{"requests":3,"total_input_tokens":200',
        '{"requests":3,"total_input_tokens":50',
        '{"requests":4,"total_input_tokens":10',
    ]
    assert list(made.ends) == [
        f']}},"ceiling":{{"hit_blocks":18,"hit_tokens":96,"hit_rate":{96 / 260}}}}}',
        ']},"ceiling":{"hit_blocks":11,"hit_tokens":68,"hit_rate":0.34},"instance_id":"a"},',
        ']},"ceiling":{"hit_blocks":7,"hit_tokens":28,"hit_rate":0.56},"instance_id":"b"},',
        ']},"ceiling":{"hit_blocks":0,"hit_tokens":0,"hit_rate":0.0},"instance_id":"c"}',
    ]
    assert made.begins is made.begins
    assert made.ends is made.ends


@pytest.mark.parametrize("tokens", [2**53, 2**62])
def test_large_sums_are_pythons_integers(tokens: int) -> None:
    made = sums(tokens, tokens - 1, tokens, 1)
    assert made.dtype == object
    assert made.input_tokens.tolist() == [3 * tokens, 2 * tokens - 1, tokens, 1]
    assert f'"hit_rate":{float(Fraction(68, 2 * tokens - 1))!r}'.replace("e-0", "e-") in made.ends[1]
    counts, rates = made.summarised(HITS)
    assert counts.tolist() == sums(1, 1, 1, 1).summarised(HITS)[0].tolist()
    assert rates[1].tolist() == [float(Fraction(20, 2 * tokens - 1)), 20 / 68, float(Fraction(8, 2 * tokens - 1))]


@pytest.mark.parametrize("tokens", [1, 2**60])
def test_chosen_instances_may_have_no_facts(tokens: int) -> None:
    chosen = sums(tokens, 1, 1, 1).chosen(["b", "x"])
    assert chosen.instance_ids == ("b", "x")
    assert chosen.dtype == sums(tokens, 1, 1, 1).dtype
    assert chosen.requests.tolist() == [10, 3, 0]
    assert chosen.ceiling_tokens.tolist() == [96, 28, 0]
    counts, rates = chosen.summarised(HITS)
    assert counts.tolist() == [[7, 36, 5, 20], [4, 16, 3, 12], [0, 0, 0, 0]]
    assert rates[1:].tolist() == [[16.0, 16 / 28, 12.0], [0.0, 1.0, 0.0]]


def test_of_nothing() -> None:
    none = np.empty(0, np.int64)
    made = InstanceSums.of(Groups(), none, none, none)
    assert made.instance_ids == ()
    counts, rates = made.summarised(np.empty((0, 2), np.int64))
    assert counts.tolist() == [[0, 0, 0, 0]]
    assert rates.tolist() == [[0.0, 1.0, 0.0]]
    assert list(made.begins) == ['{"requests":0,"total_input_tokens":0']
    assert list(made.ends) == [']},"ceiling":{"hit_blocks":0,"hit_tokens":0,"hit_rate":0.0}}']
