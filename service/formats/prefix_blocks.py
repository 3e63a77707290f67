"""Keys of all blocks of a prompt, a partial last one included (rounding `ceil`): only those of full blocks are kept."""

from __future__ import annotations

from litehit.curves import Int64Array
from schemas.dead_letter import Reason
from service.formats.base import FormatError


def keys_of_full_blocks(keys: Int64Array, field: str, input_length: int, block: int) -> Int64Array:
    """The keys without that of a partial last block.

    Args:
        keys: int64[m], one for each block.
        field: their name in the record, for the error.
        input_length: the prompt's length in tokens.
        block: tokens of a block.

    Raises:
        FormatError: there is not one key for each block.
    """
    full_blocks, tail = divmod(input_length, block)
    blocks = full_blocks + (tail > 0)
    if len(keys) != blocks:
        raise FormatError(
            Reason.LENGTH_MISMATCH,
            f"{field} has {len(keys)} keys, but input_length {input_length} has {blocks} blocks of {block} tokens "
            f"(rounded up); send one key for each block, the partial last one included, or state the block_size",
        )
    return keys[:full_blocks]
