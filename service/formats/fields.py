"""Strict reading of one JSON object's fields, for the adapters of foreign formats."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, NoReturn

from litehit.curves import Int64Array
from schemas.block_keys import MAX_KEY, MIN_KEY, BlockKeyError, block_keys_array
from schemas.dead_letter import Reason
from service.formats.base import FormatError, refuse_no_text, shown

_INT64 = 2**63


def read_object(record: bytes) -> dict[str, Any]:
    """A record's JSON object; a number with a fraction or an exponent is a Decimal, so nothing is rounded.

    Raises:
        FormatError: the record is no JSON object in UTF-8.
    """
    refuse_no_text(record)
    try:
        value = json.loads(record.decode(), parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError, ArithmeticError) as error:  # the last: an exponent beyond Decimal's
        raise FormatError(
            Reason.MALFORMED_JSON, f"the record is not valid JSON ({error}); send one JSON object"
        ) from None
    if not isinstance(value, dict):
        raise FormatError(Reason.INVALID_FIELD, f"the record is {shown(value)}; send one JSON object")
    return value


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
    if isinstance(value, Decimal) and -_INT64 < value < _INT64:
        # A Decimal's 28 digits hold any such time: only what is finer than a nanosecond is rounded.
        nanoseconds = int((value * unit_ns).quantize(Decimal(1), ROUND_HALF_EVEN))
        if -_INT64 <= nanoseconds < _INT64:
            return nanoseconds
    raise _refused(record, field, "send a number that fits in 64 bits of nanoseconds")


def key_list(record: dict[str, Any], field: str) -> Int64Array:
    """A list of 64-bit keys: int64[m].

    Raises:
        FormatError: the field is no list, or an element is no 64-bit integer; the message names its position.
    """
    values = record.get(field)
    if not isinstance(values, list):
        raise _refused(record, field, "send a list of integers", Reason.KEY_TYPE)
    try:
        return block_keys_array(values)
    except BlockKeyError as error:
        where = f"{field}[{error.position}] = {_plain(error.value)}"
        if error.out_of_range:
            sentence = f"{where} is outside 64 bits; send an integer from {MIN_KEY} to {MAX_KEY}"
            raise FormatError(Reason.KEY_OUT_OF_RANGE, sentence) from None
        raise FormatError(Reason.KEY_TYPE, f"{where} is no integer; send an integer") from None


def _refused(record: dict[str, Any], field: str, remedy: str, reason: Reason = Reason.INVALID_FIELD) -> FormatError:
    what = f"{field} = {_plain(record[field])} is refused" if field in record else f"{field} is absent"
    return FormatError(reason, f"{what}; {remedy}")


def _plain(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else shown(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
