"""Keys that cover a partial last block too (rounding `ceil`), in a format that knows its block size."""

from __future__ import annotations

from litehit.curves import Int64Array
from litehit.errors import RoundedUpMismatch
from litehit.rounding import keys_of_full_blocks
from schemas.dead_letter import Reason
from service.formats.base import FormatError


def full_block_keys(
    keys: Int64Array, input_length: int, block: int, field: str, block_field: str | None = None
) -> Int64Array:
    """As `litehit.rounding.keys_of_full_blocks`.

    Raises:
        FormatError: there is not one key for each block.
    """
    try:
        return keys_of_full_blocks(keys, input_length, block, field, block_field)
    except RoundedUpMismatch as error:
        raise FormatError(Reason.LENGTH_MISMATCH, str(error)) from None
