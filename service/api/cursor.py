"""Where a reader of facts has come to, as a text that it sends back."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

from service.archive.segment import ChainKey

_MAX_OFFSET = 2**63 - 1
_MAX_BYTES = 1 << 24
"""Of a cursor that is unpacked: hundreds of thousands of chains."""


def encode_cursor(offsets: Mapping[ChainKey, int]) -> str:
    """The next offset of each chain. Offsets stay what they are, whatever becomes of the files that hold the facts."""
    nested: dict[str, dict[str, dict[int, int]]] = {}
    for chain, offset in sorted(offsets.items()):
        nested.setdefault(chain.topic, {}).setdefault(chain.generation, {})[chain.partition] = offset
    # Packed: there may be hundreds of chains, and it travels in a header and in a URL.
    packed = zlib.compress(json.dumps(nested, separators=(",", ":")).encode(), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(text: str) -> dict[ChainKey, int]:
    """The offsets of a cursor.

    Raises:
        ValueError: it is none; the message follows its name and value.
    """
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        nested = json.loads(_unpacked(packed))
        return {
            ChainKey(topic, generation, _natural(int(partition))): _natural(offset)
            for topic, generations in nested.items()
            for generation, partitions in generations.items()
            for partition, offset in partitions.items()
        }
    except (binascii.Error, zlib.error, ValueError, AttributeError, TypeError, RecursionError):
        raise ValueError(
            "is no cursor; send the one that an answer gave in LiteHit-Cursor, or leave it out to begin with the first"
        ) from None


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _MAX_BYTES)
    if not unpacker.eof:
        raise ValueError("cut off, or of more bytes than any cursor")
    return text


def _natural(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= _MAX_OFFSET:
        raise ValueError(number)
    return number
