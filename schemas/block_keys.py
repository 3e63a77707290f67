"""Block keys on the wire: how a list of integers or of texts becomes an exact int64 array."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from schemas.key_text import KEY_PATTERN, integer_of_text, keys_of_strings

BlockKeyArray: TypeAlias = NDArray[np.int64]

MIN_KEY = -(2**63)
MAX_KEY = 2**64 - 1
KEY_FORMS = "send an integer, or as a string a decimal number or 16, 32, 64 or 128 hexadecimal digits"
"""What a key may be, for messages."""


class BlockKeyError(ValueError):
    """One element of a key list is not a 64-bit key.

    Attributes:
        position: index of the first offending element.
        value: the element as it was given.
        out_of_range: True for an integer outside 64 bits, False for anything that is no integer.
        why: what is wrong with it, and what to do.
    """

    def __init__(self, position: int, value: object, *, out_of_range: bool) -> None:
        self.position = position
        self.value = value
        self.out_of_range = out_of_range
        if out_of_range:
            self.why = f"is outside 64 bits; send an integer from {MIN_KEY} to {MAX_KEY}"
        elif isinstance(value, str):
            self.why = f"writes no key; {KEY_FORMS}"
        else:
            self.why = not_a_key(_kind(value))
        super().__init__(f"block_keys[{position}] = {_shorten(repr(value))} {self.why}")


def not_a_key(kind: str) -> str:
    """Why something of a kind that is neither an integer nor a string is no key, and what to do."""
    return f"is {kind}; {KEY_FORMS}"


def block_keys_array(values: Sequence[Any] | NDArray[Any], *, hexadecimal: bool = False) -> BlockKeyArray:
    """Convert a list of keys to an int64 array, exactly.

    18446744073709551615 and -1 are the same key (two's complement). No value passes through a double. What a string
    means is in `schemas.key_text`.

    Args:
        values: integers from -2**63 to 2**64 - 1 and strings, or an int64 or uint64 array (returned as a view).
        hexadecimal: strings of sixteen decimal digits are hexadecimal too.

    Raises:
        BlockKeyError: an element is a bool, a float, null, a string that writes no key, or outside 64 bits.
    """
    if isinstance(values, np.ndarray):
        if values.dtype in (np.int64, np.uint64):
            return values.view(np.int64)
        values = values.tolist()
    # set(map(type, ...)) looks at every element at C speed; bool is a subclass of int and must not pass as one.
    kinds = set(map(type, values))
    if kinds <= {int}:
        try:
            return np.frombuffer(array("q", values), dtype=np.int64)
        except OverflowError:
            pass
    if kinds == {str} and (keys := keys_of_strings(list(values), hexadecimal=hexadecimal)) is not None:
        return keys
    one_by_one = [_one_key(position, value, hexadecimal=hexadecimal) for position, value in enumerate(values)]
    return np.array(one_by_one, dtype=np.int64)


def _one_key(position: int, value: object, *, hexadecimal: bool) -> int:
    key = integer_of_text(value, hexadecimal=hexadecimal) if type(value) is str else value
    if type(key) is not int:
        raise BlockKeyError(position, value, out_of_range=False)
    if not MIN_KEY <= key <= MAX_KEY:
        raise BlockKeyError(position, value, out_of_range=True)
    return key - 2**64 if key >= 2**63 else key


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _validate(value: Any) -> BlockKeyArray:
    if not isinstance(value, list | tuple | np.ndarray):
        raise PydanticCustomError(
            "block_keys_type",
            "block_keys is {kind}; send a list of integers or strings",
            {"kind": _kind(value)},
        )
    try:
        return block_keys_array(value)
    except BlockKeyError as error:
        kind = "block_key_range" if error.out_of_range else "block_key_type"
        raise PydanticCustomError(kind, "{reason}", {"reason": str(error)}) from None


BlockKeys = Annotated[
    BlockKeyArray,
    PlainValidator(_validate),
    PlainSerializer(lambda keys: keys.tolist(), return_type=list[int]),
    WithJsonSchema(
        {
            "type": "array",
            "items": {
                "anyOf": [
                    {"type": "integer", "minimum": MIN_KEY, "maximum": MAX_KEY},
                    {"type": "string", "pattern": KEY_PATTERN},
                ]
            },
        }
    ),
]
"""Field type of a key list: a one-dimensional int64 array, any 64-bit integer accepted, as a number or as text."""
