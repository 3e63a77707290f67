"""Keys from token ids: equal exactly where the prompts, and what separates them, are equal up to there."""

from __future__ import annotations

import pytest

from examples.chained_keys import chained_keys


def test_a_key_names_everything_before_it() -> None:
    tokens = list(range(40))
    keys = chained_keys(tokens, 16, "m")
    assert len(keys) == 2  # eight tokens fill no block
    assert chained_keys(tokens[:32], 16, "m") == keys
    assert chained_keys([*tokens[:31], 99], 16, "m")[0] == keys[0]
    assert chained_keys([*tokens[:31], 99], 16, "m")[1] != keys[1]
    assert not set(chained_keys([99, *tokens[1:32]], 16, "m")) & set(keys)
    assert not set(chained_keys(tokens, 16, "m/tenant")) & set(keys)
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_the_same_in_every_process_and_on_every_machine() -> None:
    assert chained_keys([1, 2, 3, 4], 2, "model/tenant") == [8657321965895866314, -5694997734855948265]


def test_a_block_size_that_is_not_positive() -> None:
    with pytest.raises(ValueError, match="block_size_tokens 0 is not positive"):
        chained_keys([1], 0, "m")
