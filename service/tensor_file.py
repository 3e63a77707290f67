"""Files of plain arrays in safetensors' format.

The library's own `save` and `load` copy everything while they hold the interpreter's lock: 0.4 s for ten million
blocks, in which no lane of the process works. Here the arrays are copied without it into the file's bytes, and not at
all out of them. That both read each other's files is tested.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

Arrays: TypeAlias = dict[str, np.ndarray]

_METADATA = "__metadata__"
_LENGTH_BYTES = 8
_ALIGNMENT = 8
_TYPES: dict[str, np.dtype[Any]] = {
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    dtype: str
    shape: list[int]
    data_offsets: list[int]


_ENTRIES = TypeAdapter(dict[str, _Entry])
_TEXTS = TypeAdapter(dict[str, str])


def encode(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> memoryview:
    """A file of one-dimensional arrays of int64, uint64, int32 or uint32."""
    # The wide ones first, so that all are aligned; then by name, so that equal arrays give equal files.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    end = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": [len(array)],
            "data_offsets": [end, end := end + array.nbytes],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    start = _LENGTH_BYTES + len(text)
    content = np.empty(start + end, np.uint8)
    content[:start] = np.frombuffer(len(text).to_bytes(_LENGTH_BYTES, "little") + text, np.uint8)
    for name in order:
        low, high = header[name]["data_offsets"]
        content[start + low : start + high] = np.ascontiguousarray(arrays[name]).view(np.uint8)
    return content.data


def decode(content: bytes | mmap.mmap) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a file, as views of its bytes, and its metadata.

    Raises:
        ValueError: says what is wrong with the file.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    if len(content) < start or start == _LENGTH_BYTES:
        raise ValueError(f"it has {len(content)} bytes, and its header alone would end at {start}")
    try:
        header = json.loads(content[_LENGTH_BYTES:start])
        metadata = _TEXTS.validate_python(header.pop(_METADATA, {}))
        entries = _ENTRIES.validate_python(header)
    except (ValidationError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"its header is none of a file of arrays: {str(error).splitlines()[0]}") from None
    arrays: Arrays = {}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        dtype = _TYPES.get(entry.dtype)
        if dtype is None:
            raise ValueError(f"array {name} is of type {entry.dtype}, not one of {', '.join(_TYPES)}")
        count = entry.shape[0] if len(entry.shape) == 1 else -1
        if count < 0 or entry.data_offsets != [end, end + count * dtype.itemsize]:
            raise ValueError(f"array {name} of shape {entry.shape} does not lie at {entry.data_offsets}")
        end = entry.data_offsets[1]
        if start + end <= len(content):
            arrays[name] = np.frombuffer(content, dtype, count, start + entry.data_offsets[0])
    if start + end != len(content):
        raise ValueError(f"it has {len(content)} bytes, and its arrays end at {start + end}")
    return arrays, metadata
