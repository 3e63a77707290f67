from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.block_keys import MAX_KEY, MIN_KEY, BlockKeyError, block_keys_array


@given(values=st.lists(st.integers(MIN_KEY, MAX_KEY)))
def test_every_64_bit_integer_is_exact(values: list[int]) -> None:
    assert [key % 2**64 for key in block_keys_array(values).tolist()] == [value % 2**64 for value in values]


def test_neighbours_beyond_a_double_stay_apart() -> None:
    assert block_keys_array([2**53, 2**53 + 1, 2**63]).tolist() == [2**53, 2**53 + 1, -(2**63)]


def test_an_unsigned_array_is_a_view() -> None:
    unsigned = np.array([2**64 - 1], np.uint64)
    keys = block_keys_array(unsigned)
    assert keys.tolist() == [-1]
    assert np.shares_memory(keys, unsigned)


@pytest.mark.parametrize(
    "value",
    [True, None, 1.0, float("nan"), "one", "", "0x1", "1.0", "+1", "01", "1_0", " 1", "1\n", "٣", [1], np.float64(1)],
)
def test_what_is_no_integer_is_named(value: object) -> None:
    with pytest.raises(BlockKeyError, match=r"block_keys\[2\] = .* send an integer") as caught:
        block_keys_array([0, 2**63, value, 2**64])
    assert (caught.value.position, caught.value.out_of_range) == (2, False)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**400])
def test_what_is_outside_64_bits_is_named(value: int) -> None:
    with pytest.raises(BlockKeyError, match=r"block_keys\[1\] = .* outside 64 bits") as caught:
        block_keys_array([5, value])
    assert caught.value.out_of_range
    assert len(str(caught.value)) < 250


def test_an_array_of_doubles_is_refused() -> None:
    with pytest.raises(BlockKeyError, match=r"block_keys\[0\] = 1.0 is a float"):
        block_keys_array(np.array([1.0]))
