"""Block keys that are written as text: what such a text means, and a whole list of them at once.

A text of 16 hexadecimal digits is the number they write. A longer digest of 32, 64 or 128 digits is reduced to its
first 16, so a digest and one that was cut to 64 bits name the same key. Sixteen decimal digits could be either: they
are decimal, unless the list is known to be hexadecimal, or they begin with 0, as no decimal number does.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.thread_parser import ThreadParser

_HEX_LENGTHS = frozenset({16, 32, 64, 128})
_HEX_DIGITS = 16
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{16}){1,2}|(?:[0-9a-fA-F]{64}){1,2}")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)")
KEY_PATTERN = f"^(?:{_DECIMAL.pattern}|{_HEXADECIMAL.pattern})$"
"""What a key's text looks like; a decimal number must also fit in 64 bits."""
_LONGEST_DECIMAL = len(str(-(2**63)))

_QUOTE, _COMMA = b'",'
_NO_DIGITS = b'",[]'
# Of the sixteen digits of a word: how far to shift for each, what it counts as a decimal one, and, for all at once, the
# half of them that stand in a byte's low bits, a sum that carries where one is above 9, and the bit that it carries to.
_SHIFTS = np.arange(60, -1, -4, dtype=np.uint64)
_POWERS_OF_TEN = 10 ** np.arange(_HEX_DIGITS - 1, -1, -1, dtype=np.uint64)
_LOW, _CARRY, _CARRIED = (np.uint64(int(each * 8, 16)) for each in ("0f", "06", "10"))


_thread = ThreadParser()


def integer_of_text(text: str, *, hexadecimal: bool) -> int | None:
    """The integer that a key's text writes, in 64 bits or not; None: it writes no key.

    Args:
        text: the key.
        hexadecimal: sixteen decimal digits are hexadecimal too.
    """
    decimal = _DECIMAL.fullmatch(text) is not None
    if _HEXADECIMAL.fullmatch(text) and (hexadecimal or not decimal or len(text) > _HEX_DIGITS):
        return int(text[:_HEX_DIGITS], 16)
    if not decimal:
        return None
    # A longer one is outside 64 bits whatever its digits, and Python refuses to convert very long ones.
    return int(text[: _LONGEST_DECIMAL + 1])


def keys_of_json_array(array: Any, *, hexadecimal: bool = False) -> NDArray[np.int64] | None:
    """The keys of an array of a simdjson document: int64[m]; None where they must be looked at one by one.

    Args:
        array: a `simdjson.Array` that holds no array.
        hexadecimal: as in `integer_of_text`.
    """
    keys = _integers(array)
    if keys is None and isinstance(array[0], str):
        return _keys_of_texts(array.mini, len(array), hexadecimal=hexadecimal)
    return keys


def keys_of_strings(texts: list[str], *, hexadecimal: bool = False) -> NDArray[np.int64] | None:
    """The keys of a list of strings, one or more: int64[m]; None where they must be looked at one by one."""
    try:
        array = ('["' + '","'.join(texts) + '"]').encode()
    except UnicodeEncodeError:
        return None
    return _keys_of_texts(array, len(texts), hexadecimal=hexadecimal)


def _keys_of_texts(array: bytes, count: int, *, hexadecimal: bool) -> NDArray[np.int64] | None:
    """The keys of a JSON array of strings, as text without whitespace between its tokens."""
    # `[`, then of each string a quote, its digits, a quote and a comma; the last has `]` for the comma.
    width, rest = divmod(len(array) - 1, count)
    if not rest and width - 3 in _HEX_LENGTHS:
        return _keys_of_digits(array, count, width, hexadecimal=hexadecimal)
    return None if hexadecimal else _keys_of_decimals(array, count)


def _keys_of_digits(array: bytes, count: int, width: int, *, hexadecimal: bool) -> NDArray[np.int64] | None:
    rows = np.frombuffer(array, np.uint8, offset=1).reshape(count, width)
    if (rows[:, 0] != _QUOTE).any() or (rows[:, -2] != _QUOTE).any() or (rows[:-1, -1] != _COMMA).any():
        return None
    try:
        binary = bytes.fromhex(array.translate(None, _NO_DIGITS).decode("ascii"))
    except ValueError:
        return None
    digits = width - 3
    if 2 * len(binary) != count * digits:  # whitespace, or a quote, comma or bracket among the digits
        return None
    words = np.frombuffer(binary, ">u8")[:: digits // _HEX_DIGITS].astype(np.uint64)
    if not hexadecimal and digits == _HEX_DIGITS:
        above_nine = ((words & _LOW) + _CARRY | (words >> np.uint64(4) & _LOW) + _CARRY) & _CARRIED
        decimal = (above_nine == 0) & (words >> _SHIFTS[0] != 0)
        if decimal.any():
            words[decimal] = (words[decimal, None] >> _SHIFTS & np.uint64(15)) @ _POWERS_OF_TEN
    return words.view(np.int64)


def _keys_of_decimals(array: bytes, count: int) -> NDArray[np.int64] | None:
    # Without its quotes it is an array of numbers, which a JSON parser reads as strictly as `_DECIMAL` does, but for
    # what could stand between them.
    numbers = array.replace(b'"', b"")
    if (
        len(array) - len(numbers) != 2 * count
        or array.count(b'","') != count - 1
        or not (array.startswith(b'["') and array.endswith(b'"]'))
        or numbers.count(b"[") != 1
        or len(numbers.split()) != 1
    ):
        return None
    try:
        parsed: Any = _thread.parser.parse(numbers)
    except (ValueError, RuntimeError):  # the latter: a number of more than 64 bits
        return None
    return _integers(parsed) if len(parsed) == count else None


def _integers(array: Any) -> NDArray[np.int64] | None:
    try:
        return np.frombuffer(array.as_buffer(of_type="i"), np.int64)
    except TypeError:  # an element is no integer
        return None
    except ValueError:  # a key is 2**63 or more; one below 0 beside it fails again
        try:
            return np.frombuffer(array.as_buffer(of_type="u"), np.int64)
        except (ValueError, TypeError):
            return None
