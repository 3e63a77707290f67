from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.errors import CoarseningError, InvalidRequest, LengthMismatch
from litehit.preprocess import normalize_batch, normalize_request
from tests.reference import flatten

MASK = 2**64 - 1


def chain(raw: list[int]) -> list[int]:
    """SPEC section 3 in Python's own integers."""
    h, keys = 0, []
    for v in raw:
        h ^= ((v & MASK) + 0x9E3779B97F4A7C15 + ((h << 12) & MASK) + (h >> 32)) & MASK
        keys.append(h - 2**64 if h >= 2**63 else h)
    return keys


@pytest.mark.parametrize(
    ("raw", "chained"),
    [
        ([1, 2, 3], [-7046029254386353130, -8366447756632839738, 8024461590772477417]),
        ([-5, 7], [-7046029254386353136, -8366447756632880699]),
        ([42], [-7046029254386353089]),
        ([0], [-7046029254386353131]),
    ],
)
def test_prefix_hash_vectors(raw: list[int], chained: list[int]) -> None:
    assert normalize_request(raw, 0, 4, True).block_keys.tolist() == chained
    assert chain(raw) == chained


def test_unsigned_keys_of_a_batch_are_the_same_keys() -> None:
    batch = normalize_batch(np.array([2**64 - 1], np.uint64), np.array([0, 1]), np.array([0]), 4)
    assert batch.keys.tolist() == [-1]


def test_a_tail_stays_in_the_denominator() -> None:
    request = normalize_request([1, 2, 3], 13, 4)
    assert (request.block_keys.tolist(), request.input_token_len) == ([1, 2, 3], 13)


def test_a_request_of_only_a_tail_is_legal() -> None:
    request = normalize_request([], 7, 16)
    assert (request.block_keys.tolist(), request.input_token_len) == ([], 7)


@pytest.mark.parametrize("absent", [0, -1])
def test_an_absent_length_is_the_trace_blocks(absent: int) -> None:
    assert normalize_request([1, 2, 3], absent, 8, False, 4).input_token_len == 12


@pytest.mark.parametrize(
    ("keys", "length", "words"),
    [([0, 1], 20, "2 block keys"), ([1], 8, "1 block key"), ([1, 2, 3], 11, "3 block keys")],
)
def test_a_wrong_number_of_keys_names_both_numbers(keys: list[int], length: int, words: str) -> None:
    with pytest.raises(LengthMismatch, match=f"^{words}, but input_token_len {length} has "):
        normalize_request(keys, length, 4)


@pytest.mark.parametrize(("block", "trace_block"), [(16, 64), (96, 64), (0, 64), (-64, 64), (64, -64), (0, 0)])
def test_blocks_only_become_coarser_by_a_whole_factor(block: int, trace_block: int) -> None:
    with pytest.raises(CoarseningError, match=f"block_size_tokens {block} "):
        normalize_request([], 0, block, False, trace_block)


def test_coarsening_takes_every_kth_key_and_drops_the_incomplete_tail() -> None:
    request = normalize_request([1, 2, 3, 4, 5], 5 * 64 + 9, 128, False, 64)
    assert (request.block_keys.tolist(), request.input_token_len) == ([2, 4], 329)


def test_hashes_are_chained_before_they_are_coarsened() -> None:
    raw = [5, 6, 7, 8, 9]
    assert normalize_request(raw, 0, 128, True, 64).block_keys.tolist() == chain(raw)[1::2]


def test_unsigned_keys_are_the_signed_ones() -> None:
    assert normalize_request([2**64 - 1, 2**63], 0, 1).block_keys.tolist() == [-1, -(2**63)]


def test_the_argument_is_never_written_to() -> None:
    keys = np.array([1, 2, 3], np.int64)
    normalize_request(keys, 0, 8, True, 4)
    assert keys.tolist() == [1, 2, 3]


requests = st.lists(
    st.tuples(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9), st.integers(0, 3), st.booleans()), max_size=8
)


@given(requests=requests, factor=st.integers(1, 4), enable_prefix_hash=st.booleans())
def test_a_batch_equals_its_requests_one_by_one(
    requests: list[tuple[list[int], int, bool]], factor: int, enable_prefix_hash: bool
) -> None:
    trace_block = 4
    lengths = [len(keys) * trace_block + tail if stated else 0 for keys, tail, stated in requests]
    batch = normalize_batch(
        *flatten([keys for keys, _, _ in requests]),
        np.array(lengths, np.int64),
        factor * trace_block,
        enable_prefix_hash,
        trace_block,
    )
    for i, (keys, _, _) in enumerate(requests):
        prefix_keys = chain(keys) if enable_prefix_hash else keys
        expected = prefix_keys[factor - 1 :: factor]
        assert batch.keys[batch.offsets[i] : batch.offsets[i + 1]].tolist() == expected
        one = normalize_request(keys, lengths[i], factor * trace_block, enable_prefix_hash, trace_block)
        assert one.block_keys.tolist() == expected
        assert one.input_token_len == batch.input_token_lens[i] == (lengths[i] or len(keys) * trace_block)


def test_a_batch_whose_arrays_do_not_fit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="offsets must run from 0 to 3 in 2 steps"):
        normalize_batch(np.array([1, 2, 3]), np.array([0, 2]), np.array([0]), 4)
