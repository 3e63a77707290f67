"""Block keys on the wire: how a list of integers becomes an exact int64 array."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

BlockKeyArray: TypeAlias = NDArray[np.int64]

MIN_KEY = -(2**63)
MAX_KEY = 2**64 - 1


class BlockKeyError(ValueError):
    """One element of a key list is not a 64-bit integer.

    Attributes:
        position: index of the first offending element.
        value: the element as it was given.
        out_of_range: True for an integer outside 64 bits, False for anything that is no integer.
    """

    def __init__(self, position: int, value: object, *, out_of_range: bool) -> None:
        self.position = position
        self.value = value
        self.out_of_range = out_of_range
        shown = _shorten(repr(value))
        why = (
            f"is outside 64 bits; send an integer from {MIN_KEY} to {MAX_KEY}"
            if out_of_range
            else f"is a {type(value).__name__}; send an integer"
        )
        super().__init__(f"block_keys[{position}] = {shown} {why}")


def block_keys_array(values: Sequence[Any] | NDArray[Any]) -> BlockKeyArray:
    """Convert a list of int64 or uint64 integers to an int64 array, exactly.

    18446744073709551615 and -1 are the same key (two's complement). No value passes through a double.

    Args:
        values: integers from -2**63 to 2**64 - 1, or an int64 or uint64 array (returned as a view).

    Raises:
        BlockKeyError: an element is a bool, a float, a string, null, or outside 64 bits.
    """
    if isinstance(values, np.ndarray):
        if values.dtype in (np.int64, np.uint64):
            return values.view(np.int64)
        values = values.tolist()
    # set(map(type, ...)) looks at every element at C speed; bool is a subclass of int and must not pass as one.
    if set(map(type, values)) <= {int}:
        try:
            return np.frombuffer(array("q", values), dtype=np.int64)
        except OverflowError:
            pass
    return np.array([_one_key(position, value) for position, value in enumerate(values)], dtype=np.int64)


def _one_key(position: int, value: object) -> int:
    if type(value) is not int:
        raise BlockKeyError(position, value, out_of_range=False)
    if not MIN_KEY <= value <= MAX_KEY:
        raise BlockKeyError(position, value, out_of_range=True)
    return value - 2**64 if value >= 2**63 else value


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _validate(value: Any) -> BlockKeyArray:
    if not isinstance(value, list | tuple | np.ndarray):
        raise PydanticCustomError(
            "block_keys_type", "block_keys is a {kind}; send a list of integers", {"kind": type(value).__name__}
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
    WithJsonSchema({"type": "array", "items": {"type": "integer", "minimum": MIN_KEY, "maximum": MAX_KEY}}),
]
"""Field type of a key list: a one-dimensional int64 array, any 64-bit integer accepted."""
