"""Of keys that cover a partial last block, those of full blocks are kept, and their number is checked."""

from __future__ import annotations

import numpy as np
import pytest

from litehit.errors import LengthMismatch, RoundedUpMismatch, TraceBlockMismatch
from litehit.request import Request
from litehit.rounding import keys_of_full_blocks

BLOCK = 16


def keys(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int64)


@pytest.mark.parametrize(("given", "length", "kept"), [(0, 0, 0), (1, 1, 0), (1, 16, 1), (2, 17, 1), (3, 47, 2)])
def test_the_partial_last_block_is_dropped(given: int, length: int, kept: int) -> None:
    assert keys_of_full_blocks(keys(given), length, BLOCK).tolist() == list(range(kept))


@pytest.mark.parametrize(
    ("given", "length", "words"),
    [
        (1, 0, "1 key, but input_length 0 has 0 blocks"),
        (0, 1, "0 keys, but input_length 1 has 1 block"),
        (1, 17, "1 key, but input_length 17 has 2 blocks"),
        (2, 16, "2 keys, but input_length 16 has 1 block"),
    ],
)
def test_a_wrong_number_is_told(given: int, length: int, words: str) -> None:
    with pytest.raises(RoundedUpMismatch) as caught:
        keys_of_full_blocks(keys(given), length, BLOCK, "hash_ids")
    assert isinstance(caught.value, LengthMismatch)
    assert str(caught.value).startswith(f"hash_ids has {words} of 16 tokens (rounded up); send ")


def request(count: int, length: int, *, stated: int | None = None, rounded_up: bool = False) -> Request:
    return Request("a", "t", 0, keys(count), length, stated, rounded_up)


def test_a_request_keeps_its_keys_where_they_are_of_full_blocks() -> None:
    given = request(3, 20)
    assert given.at_block(BLOCK) is given  # a wrong number is for the engine to tell
    assert request(1, 20, stated=16).at_block(BLOCK).block_keys.tolist() == [0]


def test_the_registered_block_tells_which_keys_are_of_full_blocks() -> None:
    settled = request(2, 20, rounded_up=True).at_block(BLOCK)
    assert settled.block_keys.tolist() == [0]
    assert settled.at_block(BLOCK) is settled
    with pytest.raises(
        RoundedUpMismatch,
        match=r"^2 keys, but an input of 20 tokens has 3 blocks of 8 tokens \(rounded up\); .* register the block",
    ):
        request(2, 20, rounded_up=True).at_block(8)


def test_without_a_length_each_key_is_of_a_full_block() -> None:
    assert request(2, 0, rounded_up=True).at_block(BLOCK).block_keys.tolist() == [0, 1]


def test_another_block_than_the_registered_one_is_refused() -> None:
    with pytest.raises(TraceBlockMismatch, match=r"blocks have 8 tokens, but instance 'a' .* 16; register it with 8"):
        request(2, 16, stated=8).at_block(BLOCK)
