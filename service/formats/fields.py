"""Strict reading of one JSON object's fields, for the adapters of foreign formats."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, NoReturn

import numpy as np

from litehit.curves import Int64Array
from schemas.block_keys import BlockKeyError, block_keys_array, not_a_key
from schemas.dead_letter import Reason
from service.formats.base import FormatError, is_unicode, refuse_no_text, shown
from service.formats.fast_object import Wanted, read_fast
from service.formats.number_text import NumberText

_INT64 = 2**63


def read_object(record: bytes) -> dict[str, Any]:
    """A record's JSON object; a number with a fraction or an exponent is a `NumberText`, so nothing is rounded.

    Raises:
        FormatError: the record is no JSON object in UTF-8.
    """
    refuse_no_text(record)
    try:
        value = json.loads(record.decode(), parse_float=NumberText, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            Reason.MALFORMED_JSON, f"the record is not valid JSON ({error}); send one JSON object"
        ) from None
    if not isinstance(value, dict):
        raise FormatError(Reason.INVALID_FIELD, f"the record is {shown(value)}; send one JSON object")
    return value


def read_members(record: bytes, wanted: Wanted) -> dict[str, Any]:
    """The members of a record's object: those that are wanted, quickly, or, of an unusual record, all.

    Raises:
        FormatError: as `read_object`.
    """
    members = read_fast(record, wanted)
    return read_object(record) if members is None else members


def integer(record: dict[str, Any], field: str, minimum: int, default: int | None = None) -> int:
    """A 64-bit integer of at least `minimum`; the default where the field is absent or null.

    Raises:
        FormatError: the field is no such integer, or is absent and has no default.
    """
    value = record.get(field)
    if value is None and default is not None:
        return default
    if type(value) is not int or not minimum <= value < _INT64:
        raise _refused(record, field, f"send an integer from {minimum} to {_INT64 - 1}")
    return value


def time_ns(record: dict[str, Any], field: str, unit_ns: int) -> int | None:
    """A time in nanoseconds, from a number of units; to the nearest where it is finer; None: absent or null.

    Raises:
        FormatError: the field is no number, or lies outside 64 bits of nanoseconds.
    """
    value = record.get(field)
    if value is None:
        return None
    if type(value) is int and -_INT64 <= value * unit_ns < _INT64:
        return value * unit_ns
    if isinstance(value, NumberText) and (nanoseconds := _nanoseconds(value, unit_ns)) is not None:
        return nanoseconds
    raise _refused(record, field, "send a number that fits in 64 bits of nanoseconds")


def _nanoseconds(value: NumberText, unit_ns: int) -> int | None:
    """None: outside 64 bits."""
    try:
        units = value.decimal()
    except ArithmeticError:
        return None
    if not -_INT64 < units < _INT64:
        return None
    # A Decimal's 28 digits hold any such time: only what is finer than a nanosecond is rounded.
    nanoseconds = int((units * unit_ns).quantize(Decimal(1), ROUND_HALF_EVEN))
    return nanoseconds if -_INT64 <= nanoseconds < _INT64 else None


def text(record: dict[str, Any], field: str) -> str | None:
    """A string, or an integer as one; None where the field is absent, null or empty.

    Raises:
        FormatError: the field is neither.
    """
    value = record.get(field)
    if value is None or (type(value) is str and is_unicode(value)):
        return value or None
    if type(value) is int:
        return str(value)
    raise _refused(record, field, "send a string")


def json_object(record: dict[str, Any], field: str) -> dict[str, Any]:
    """An object in the object.

    Raises:
        FormatError: the field is none.
    """
    value = record.get(field)
    if not isinstance(value, dict):
        raise _refused(record, field, "send an object")
    return value


def key_list(record: dict[str, Any], field: str, *, hexadecimal: bool = False) -> Int64Array:
    """A list of 64-bit keys: int64[m]; as it is where the fast path has read it.

    Args:
        record: the members of an object.
        field: the list's name.
        hexadecimal: as in `block_keys_array`.

    Raises:
        FormatError: the field is no list, or an element is no 64-bit key; the message names its position.
    """
    values = record.get(field)
    if isinstance(values, np.ndarray):
        return values
    if not isinstance(values, list):
        raise _refused(record, field, "send a list of integers or strings", Reason.KEY_TYPE)
    try:
        return block_keys_array(values, hexadecimal=hexadecimal)
    except BlockKeyError as error:
        reason = Reason.KEY_OUT_OF_RANGE if error.out_of_range else Reason.KEY_TYPE
        why = not_a_key("a float") if isinstance(error.value, NumberText) else error.why
        raise FormatError(reason, f"{field}[{error.position}] = {shown(error.value)} {why}") from None


def _refused(record: dict[str, Any], field: str, remedy: str, reason: Reason = Reason.INVALID_FIELD) -> FormatError:
    what = f"{field} = {shown(record[field])} is refused" if field in record else f"{field} is absent"
    return FormatError(reason, f"{what}; {remedy}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
