from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from litehit.core import LiteHit
from litehit.ordered_keys import find_ordered
from tests.reference import ReferenceStack

ANY_KEY = st.integers(-(2**63), 2**63 - 1)


@given(
    keys=st.sets(ANY_KEY | st.integers(0, 60), min_size=1, max_size=60),
    others=st.lists(ANY_KEY | st.integers(-5, 70), max_size=20),
)
@example(keys={-(2**63), 2**63 - 1}, others=[0])
@example(keys={7}, others=[6, 7])
def test_each_key_is_found_at_its_place_and_no_other_is(keys: set[int], others: list[int]) -> None:
    ordered = sorted(keys)
    array = np.array(ordered, np.int64)
    assert [find_ordered(array, len(array), key) for key in ordered] == list(range(len(ordered)))
    absent = [key for key in others if key not in keys and key <= ordered[-1]]
    assert [find_ordered(array, len(array), key) for key in absent] == [-1] * len(absent)


def test_keys_that_are_spread_unevenly_are_found() -> None:
    keys = np.array(sorted({2**i for i in range(63)} | {2**i + j for i in range(12, 60) for j in range(100)}))
    assert [find_ordered(keys, len(keys), key) for key in keys] == list(range(len(keys)))
    assert {find_ordered(keys, len(keys), key + 101) for key in keys[400:-1]} == {-1}


@pytest.mark.parametrize("ascending", [0, 400, 2_000, 5_000])
def test_keys_that_ascend_no_longer_go_on_exactly(ascending: int) -> None:
    """Chains whose keys ascend up to one, are in any order from there on, and are asked for again and again."""
    rng = random.Random(ascending)
    keys = [*range(0, 3 * ascending, 3), *rng.sample(range(-6_000, 3 * ascending), 5_000 - ascending)]
    core, reference = LiteHit(slack_positions=0), ReferenceStack()
    seen: set[int] = set()
    for first in range(0, len(keys), 50):
        if keys[first] in seen:
            continue
        seen.update(keys[first : first + 50])
        again = rng.randrange(0, first + 1) // 50 * 50
        for request in (keys[first : first + 50], keys[again : again + rng.randrange(60)]):
            assert core.process_request(request) == reference.process_request(request)
    assert core.recency_order().tolist() == reference.alive_blocks()
    again_core = LiteHit.from_state(core.state())
    assert again_core.process_request(keys[:60]) == core.process_request(keys[:60])


def test_ordered_blocks_that_expire_leave_the_others_ordered() -> None:
    core, reference = LiteHit(ttl=10, slack_positions=0), ReferenceStack(ttl=10)
    rng = random.Random(5)
    highest = 0
    for now in range(400):
        highest += 40
        # Now and then keys come that are below those before.
        news = [*range(highest - 20, highest), *([-now] if now > 200 and now % 3 == 0 else [])]
        for keys in (news, [*range(highest - 20 - 40 * rng.randrange(12), highest - 400, 20)], [1 - now]):
            assert core.process_request(keys, now) == reference.process_request(keys, now)
    assert core.recency_order().tolist() == reference.alive_blocks()


def test_blocks_with_ascending_keys_take_no_table() -> None:
    sizes = []
    for keys in (np.arange(100_000), -np.arange(100_000)):
        core = LiteHit()
        core.process_batch(keys, np.arange(0, 100_001, 10))
        sizes.append(core.memory_usage_bytes())
    assert sizes[1] - sizes[0] >= 8 * 100_000
