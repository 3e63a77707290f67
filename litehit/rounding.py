"""Keys of all blocks of a prompt, a partial last one included: only those of full blocks can be hit."""

from __future__ import annotations

from litehit.curves import Int64Array
from litehit.errors import RoundedUpMismatch


def keys_of_full_blocks(
    keys: Int64Array, input_token_len: int, block: int, field: str | None = None, block_field: str | None = None
) -> Int64Array:
    """The keys without that of a partial last block.

    Args:
        keys: int64[m], one for each block.
        input_token_len: the prompt's length in tokens, 0 or more.
        block: tokens of a block.
        field: name of the keys in the trace, for the error; None where the block is the registered one.
        block_field: name of the block size in the trace, for the error; None where it has none.

    Raises:
        RoundedUpMismatch: there is not one key for each block.
    """
    full_blocks, tail = divmod(input_token_len, block)
    if len(keys) != full_blocks + (tail > 0):
        raise RoundedUpMismatch(len(keys), input_token_len, block, field, block_field)
    return keys[:full_blocks]
