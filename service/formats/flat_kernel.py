"""The kernel of `flat_lines`: the lines of a text that are flat JSON objects, read without making a Python object.

It knows a part of JSON, and that part exactly: a line that is not surely of it is `OTHER`, be it valid or not.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.intrinsics import load_word, trailing_zeros
from litehit.jit import kernel
from litehit.recency import Integer
from litehit.text_kernels import Bytes, plain_end

States: TypeAlias = NDArray[np.int8]
Flags: TypeAlias = NDArray[np.bool_]

# What a line is.
BLANK = 0
FLAT = 1
OTHER = 2

PADDING = 7
"""Bytes after the last line that are looked at and mean nothing."""

_ABSENT = -1
_KEY_BYTES = 2  # the least that a key of a list takes: a digit, and what follows it
_MOST_NUMBER_BYTES = 64  # of a number that is passed over; Python refuses to read very long ones
_TEN = 10
_POWERS_OF_TEN = 10 ** np.arange(9, dtype=np.uint64)
# For the eight bytes of a word at once: what makes a digit's character its value; what sets the highest bit of a larger
# value when added to it, though it may spoil the bytes after that one; and those bits.
_ZEROS, _TO_SIGN, _SIGNS = (np.uint64(int(each * 8, 16)) for each in ("30", "76", "80"))
_UINT64_DIGITS = 20
_LEAST_OF_20_DIGITS = 10**19
_INT64_LIMIT = 2**63

_TAB, _FEED, _RETURN, _SPACE = b"\t\n\r "
_QUOTE, _COLON, _COMMA, _MINUS, _PLUS, _POINT, _ZERO, _ONE = b'":,-+.01'
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = b"{}[]"
_SMALL_E, _LARGE_E = b"eE"


def most_keys(text_bytes: int) -> int:
    """Keys that a text of so many bytes can hold."""
    return text_bytes // _KEY_BYTES


@kernel()
def read_lines(
    text: Bytes,
    names: Bytes,
    name_ends: Int64Array,
    integers: Integer,
    states: States,
    values: Int64Array,
    given: Flags,
    keys: Int64Array,
    key_firsts: Int64Array,
    key_counts: Int64Array,
) -> bool:
    """Read L lines; what stands in the rows of those that are not `FLAT` means nothing.

    Returns whether the text has just so many; no more than they are read.

    Args:
        text: the lines, each ended by a line feed, and `PADDING` more bytes.
        names: the W + T + 1 wanted members, end to end: integers, then strings; the last is the list of keys.
        name_ends: int64[W + T + 1], where each name ends.
        integers: W.
        states: int8[L], to be written.
        values: int64[L, W + 2 T], all 0: integers; then where each string begins in `text`, and ends.
        given: bool[L, W + T + 1], all False: which members a line has.
        keys: int64[`most_keys(len(text))`], to be written.
        key_firsts: int64[L], to be written: where a line's keys begin in `keys`.
        key_counts: int64[L], to be written: how many there are.
    """
    at: Integer = 0
    used: Integer = 0
    end = len(text) - PADDING
    for line in range(len(states)):
        if at == end:
            return False
        key_firsts[line] = used
        at, used, states[line] = _read_line(text, at, names, name_ends, integers, values[line], given[line], keys, used)
        key_counts[line] = used - key_firsts[line]
        while text[at] != _FEED:
            at += 1
        at += 1
    return bool(at == end)


@kernel()
def _read_line(
    text: Bytes,
    at: Integer,
    names: Bytes,
    name_ends: Int64Array,
    integers: Integer,
    values: Int64Array,
    given: Flags,
    keys: Int64Array,
    used: Integer,
) -> tuple[Integer, Integer, Integer]:
    """Returns where it stopped, at the line's end or before; how many keys are used; and what the line is."""
    first = used
    at = _skip(text, at)
    if text[at] == _FEED:
        return at, first, BLANK
    if text[at] != _OPEN_OBJECT:
        return at, first, OTHER
    while True:
        at = _skip(text, at + 1)
        if text[at] != _QUOTE:
            return at, first, OTHER
        name = at + 1
        at = plain_end(text, name)
        if text[at] != _QUOTE:
            return at, first, OTHER
        member = _member(text, name, at, names, name_ends)
        at = _skip(text, at + 1)
        if text[at] != _COLON:
            return at, first, OTHER
        at = _skip(text, at + 1)
        if member == _ABSENT:
            at, is_plain = _value_end(text, at)
            if not is_plain:
                return at, first, OTHER
        else:
            if given[member]:
                return at, first, OTHER
            given[member] = True
            if member < integers:
                at, _, is_plain, is_unsigned = _integers(text, at, False, values, member)
                is_plain = is_plain and not is_unsigned
            elif member == len(given) - 1:
                at, used, is_plain, _ = _integers(text, at, True, keys, used)
            else:
                begin = at + 1
                at, is_plain = _value_end(text, at) if text[at] == _QUOTE else (at, False)
                values[2 * member - integers], values[2 * member - integers + 1] = begin, at - 1
            if not is_plain:
                return at, first, OTHER
        at = _skip(text, at)
        if text[at] != _COMMA:
            break
    if text[at] != _CLOSE_OBJECT:
        return at, first, OTHER
    at = _skip(text, at + 1)
    return (at, used, FLAT) if text[at] == _FEED else (at, first, OTHER)


@kernel()
def _skip(text: Bytes, at: Integer) -> Integer:
    """Where the next byte stands that is no blank; a line's end is none."""
    while _is_blank(text[at]):
        at += 1
    return at


@kernel(inline="always")
def _is_blank(byte: Integer) -> bool:
    return byte in (_SPACE, _TAB, _RETURN)


@kernel(inline="always")
def _is_digit(byte: Integer) -> bool:
    return bool(np.uint8(byte - _ZERO) < _TEN)


@kernel()
def _member(text: Bytes, low: Integer, high: Integer, names: Bytes, name_ends: Int64Array) -> Integer:
    """Which of the wanted members a name is of, or `_ABSENT`."""
    first = 0
    for member in range(len(name_ends)):
        end = name_ends[member]
        if high - low == end - first:
            same = 0
            while same < high - low and text[low + same] == names[first + same]:
                same += 1
            if same == high - low:
                return member
        first = end
    return _ABSENT


@kernel(inline="always")
def _eight_digits(word: np.uint64) -> np.uint64:
    """The number that eight digits write: the values of the digits in the bytes of a word, the first in the lowest."""
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (word * np.uint64(10_000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)


@kernel()
def _integers(
    text: Bytes, at: Integer, in_list: bool, found: Int64Array, used: Integer
) -> tuple[Integer, Integer, bool, bool]:
    """Read a list of integers of 64 bits, or one integer.

    Returns where it ends, how many elements of `found` are used then, whether it is such a list or integer, and whether
    an integer is 2**63 or more. No function is given an array for each of them: that is counted, and costs more than
    the reading.
    """
    is_unsigned = False
    if in_list:
        if text[at] != _OPEN_LIST:
            return at, used, False, False
        at += 1
        while _is_blank(text[at]):
            at += 1
        if text[at] == _CLOSE_LIST:
            return at + 1, used, True, False
    while True:
        is_negative = np.int64(text[at] == _MINUS)  # half of the keys are, at random: a branch would be guessed wrongly
        first = at + is_negative
        at = first
        magnitude = np.uint64(0)
        count: Integer = np.int64(8)
        while count == 8:
            word = load_word(text, at) ^ _ZEROS
            count = np.int64(trailing_zeros(((word + _TO_SIGN) | word) & _SIGNS)) >> 3
            if count > 0:
                magnitude = magnitude * _POWERS_OF_TEN[count] + _eight_digits(word << np.uint64(64 - 8 * count))
            at += count
        digits = at - first
        if digits == 0 or (text[first] == _ZERO and digits > 1):
            return at, used, False, False
        # Of 20 digits, those beyond 64 bits have wrapped to less than any of 20 digits, if the first of them is 1.
        if digits >= _UINT64_DIGITS and (
            digits > _UINT64_DIGITS or text[first] != _ONE or magnitude < np.uint64(_LEAST_OF_20_DIGITS)
        ):
            return at, used, False, False
        if magnitude >= np.uint64(_INT64_LIMIT):
            if is_negative and magnitude > np.uint64(_INT64_LIMIT):
                return at, used, False, False
            is_unsigned |= not is_negative
        found[used] = (np.int64(magnitude) ^ -is_negative) + is_negative
        used += 1
        if not in_list:
            return at, used, True, is_unsigned
        if text[at] != _COMMA:
            while _is_blank(text[at]):
                at += 1
            if text[at] == _CLOSE_LIST:
                return at + 1, used, True, is_unsigned
            if text[at] != _COMMA:
                return at, used, False, is_unsigned  # it may be the line's end, which must not be passed
        at += 1
        if text[at] == _SPACE:
            at += 1
        if text[at] <= _SPACE:
            while _is_blank(text[at]):
                at += 1


@kernel()
def _value_end(text: Bytes, at: Integer) -> tuple[Integer, bool]:
    """Where a value ends that is not wanted, and whether it is a plain one: a string, a number, true, false or null."""
    if text[at] == _QUOTE:
        at = plain_end(text, at + 1)
        return (at + 1, True) if text[at] == _QUOTE else (at, False)
    if text[at] == _MINUS or _is_digit(text[at]):
        return _number_end(text, at)
    for literal in (b"true", b"false", b"null"):
        same = 0
        while same < len(literal) and text[at + same] == literal[same]:
            same += 1
        if same == len(literal):
            return at + same, True
    return at, False


@kernel()
def _number_end(text: Bytes, at: Integer) -> tuple[Integer, bool]:
    first = at
    if text[at] == _MINUS:
        at += 1
    digits = at
    at = _digits_end(text, at)
    is_number = at > digits and (text[digits] != _ZERO or at == digits + 1)
    if text[at] == _POINT:
        digits = at + 1
        at = _digits_end(text, digits)
        is_number = is_number and at > digits
    if text[at] == _SMALL_E or text[at] == _LARGE_E:
        digits = at + 1
        if text[digits] == _PLUS or text[digits] == _MINUS:
            digits += 1
        at = _digits_end(text, digits)
        is_number = is_number and at > digits
    return at, bool(is_number and at - first <= _MOST_NUMBER_BYTES)


@kernel()
def _digits_end(text: Bytes, at: Integer) -> Integer:
    while _is_digit(text[at]):
        at += 1
    return at
