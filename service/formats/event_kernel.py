"""The kernel of the binary request event: plain messages, read without making a Python object.

It knows a part of the wire format, and that part exactly: a message that is not surely of it is left, valid or
not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.intrinsics import load_word
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import Bytes

KEY_BYTES = 8

NUMBERS = 8
"""Numbers of fields that are looked at, 0 included, which none has; but for that of `fields`."""

INSTANCE_ID, TRACE_ID, TIMESTAMP_NS, BLOCK_KEYS, INPUT_TOKEN_LEN, TRACE_BLOCK = range(2, NUMBERS)
_TYPE, _FIELDS = 1, 15

_VARINT, _LENGTH_DELIMITED = 0, 2  # ways in which a value is written
_ENTRY_KEY, _ENTRY_VALUE = 1 << 3 | _LENGTH_DELIMITED, 2 << 3 | _LENGTH_DELIMITED
_MORE = 0x80
_MOST_LENGTH_BYTES = 4  # of a length that is looked at
_MOST_VARINT_BYTES = 10


@kernel()
def read_events(
    text: Bytes,
    ends: Int64Array,
    is_plain: NDArray[np.bool_],
    values: Int64Array,
    given: NDArray[np.bool_],
    keys: Int64Array,
    key_firsts: Int64Array,
    key_counts: Int64Array,
) -> None:
    """Read R messages; what stands in the rows of those that are not plain means nothing.

    Args:
        text: the messages, end to end.
        ends: int64[R], where each ends.
        is_plain: bool[R], to be written.
        values: int64[R, `NUMBERS`, 2], all 0, by a field's number: an integer, or where a string begins, and ends.
        given: bool[R, `NUMBERS`], all False: which fields a message has.
        keys: int64[`len(text) // KEY_BYTES`], to be written.
        key_firsts: int64[R], to be written: where a message's keys begin in `keys`.
        key_counts: int64[R], to be written: how many there are.
    """
    at: Integer = 0
    used: Integer = 0
    for record in range(len(ends)):
        end = ends[record]
        key_firsts[record] = used
        is_plain[record] = _read_event(text, at, end, values[record], given[record])
        first, keys_end = values[record, BLOCK_KEYS]
        count = (keys_end - first) // KEY_BYTES
        for key in range(count):
            keys[used + key] = np.int64(load_word(text, first + KEY_BYTES * key))
        key_counts[record] = count
        used += count
        at = end


@kernel()
def _read_event(text: Bytes, at: Integer, end: Integer, values: Int64Array, given: NDArray[np.bool_]) -> bool:
    """Whether a message is plain."""
    if at == end:
        return False
    while at < end:
        number = text[at] >> 3
        if number != _FIELDS:
            if number < 1 or number >= NUMBERS or given[number]:
                return False
            given[number] = True
        at = _value_end(text, at, end, number, values)
        if at < 0:
            return False
    return True


@kernel()
def _value_end(text: Bytes, at: Integer, end: Integer, number: Integer, values: Int64Array) -> Integer:
    """Where a field ends that begins at a place, or -1 where it is not plain; its value is written to `values`."""
    kind = text[at] & 7
    at += 1
    if number in (_TYPE, TIMESTAMP_NS, INPUT_TOKEN_LEN, TRACE_BLOCK):
        at, value = _varint(text, at, end)
        if kind != _VARINT or (number == _TYPE and value != 0) or (number == TRACE_BLOCK and value < 1):
            return -1
        values[number, 0] = value
        return at
    begin, value_end = _bytes(text, at, end)
    if begin < 0 or kind != _LENGTH_DELIMITED:
        return -1
    if number == _FIELDS:  # only a template of instance ids looks at it; but it must be valid
        return value_end if _is_plain_entry(text, begin, value_end) else -1
    if number == BLOCK_KEYS:
        is_plain = (value_end - begin) % KEY_BYTES == 0
    else:
        is_plain = _is_ascii(text, begin, value_end) and (number == TRACE_ID or value_end > begin)
    if not is_plain:
        return -1
    values[number, 0], values[number, 1] = begin, value_end
    return value_end


@kernel()
def _varint(text: Bytes, at: Integer, end: Integer) -> tuple[Integer, Integer]:
    """Where an int64 ends that begins at a place, or -1 where none is written as short as can be; and its value."""
    value = np.uint64(0)
    for index in range(_MOST_VARINT_BYTES):
        if at + index >= end:
            break
        byte = text[at + index]
        value |= np.uint64(byte & 0x7F) << np.uint64(7 * index)
        if byte < _MORE:
            is_shortest = (byte > 0 or index == 0) and (byte == 1 or index < _MOST_VARINT_BYTES - 1)
            return at + index + 1 if is_shortest else -1, np.int64(value)
    return -1, 0


@kernel()
def _bytes(text: Bytes, at: Integer, end: Integer) -> tuple[Integer, Integer]:
    """Where bytes begin whose length stands at a place, or -1 where they do not end in time; and where they end."""
    begin, length = _varint(text, at, end)
    if begin < 0 or begin - at > _MOST_LENGTH_BYTES or length > end - begin:
        return -1, 0
    return begin, begin + length


@kernel()
def _is_ascii(text: Bytes, at: Integer, end: Integer) -> bool:
    while at < end and text[at] < _MORE:
        at += 1
    return bool(at == end)


@kernel()
def _is_plain_entry(text: Bytes, at: Integer, end: Integer) -> bool:
    """Whether it is an entry of `fields`, in ASCII."""
    while at < end:
        tag = text[at]
        if tag not in (_ENTRY_KEY, _ENTRY_VALUE):
            return False
        at, value_end = _bytes(text, at + 1, end)
        if at < 0 or not _is_ascii(text, at, value_end):
            return False
        at = value_end
    return True
