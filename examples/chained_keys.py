"""Block keys from token ids, for a gateway whose engine gives no prefix hashes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence


def chained_keys(token_ids: Sequence[int], block_size_tokens: int, separation: str) -> list[int]:
    """The prefix key of each full block: the same in every process, on every machine.

    A block's digest is BLAKE2b, cut to 64 bits, of the digest before it and of its own tokens (int64, little endian);
    the first one follows the digest of the separation. The key is that digest as a signed integer, little endian.

    Args:
        token_ids: the whole prompt, chat template included, as the engine sees it.
        block_size_tokens: tokens of a block, 1 or more; a last block that is not full has no key.
        separation: all that must not share a cache, such as `model/tenant/adapter`: other text, other keys.

    Raises:
        ValueError: the block size is not positive.
    """
    if block_size_tokens < 1:
        raise ValueError(f"block_size_tokens {block_size_tokens} is not positive; give the registered one")
    digest = hashlib.blake2b(separation.encode(), digest_size=8).digest()
    keys = []
    for end in range(block_size_tokens, len(token_ids) + 1, block_size_tokens):
        block = struct.pack(f"<{block_size_tokens}q", *token_ids[end - block_size_tokens : end])
        digest = hashlib.blake2b(digest + block, digest_size=8).digest()
        keys.append(int.from_bytes(digest, "little", signed=True))
    return keys
