"""The fast path of every format: wanted members of a plain JSON object, never other ones than a slow reader finds.

Keys go from the text to an array without becoming Python objects. A record that is unusual in any way, or wrong, is
left to the format's slow reader (`fields.read_object`, or the model of request events): nothing here decides what is
valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias, Union

import simdjson

from schemas.key_text import keys_of_json_array
from schemas.thread_parser import ThreadParser
from service.formats.number_text import NumberText

_MAX_OBJECTS = 16  # simdjson takes deeper nesting than the slow readers do


class Member(Enum):
    """What a member is wanted for."""

    VALUE = "value"
    """A string, an integer, a bool or null as Python's; a number with a fraction or an exponent as `NumberText`."""
    KEYS = "keys"
    """A list of keys as int64[m]."""
    HEXADECIMAL_KEYS = "hexadecimal_keys"
    """The same, where sixteen decimal digits are hexadecimal."""


# An enumeration's members are slow to look up.
_VALUE, _KEYS, _HEXADECIMAL_KEYS = Member.VALUE, Member.KEYS, Member.HEXADECIMAL_KEYS
_PLAIN = frozenset({str, int, bool, type(None)})

Wanted: TypeAlias = Mapping[str, Union[Member, "Wanted"]]
"""Members by name; those of an object inside by its own."""


_thread = ThreadParser()


class _Unusual(Exception):  # nothing is wrong
    """The record is for the slow reader."""


def read_fast(record: bytes, wanted: Wanted) -> dict[str, Any] | None:
    """The wanted members that a record's object has; None where the record is for the slow reader."""
    # simdjson takes a byte order mark, and looks a name up as a C string, which an escaped NUL would cut.
    if record[:1] != b"{" or b"\\" in record:
        return None
    if record.find(b"{", 1) >= 0 and record.count(b"{") > _MAX_OBJECTS:  # find is far faster than count
        return None
    try:
        # A parser cannot be used again while objects of its last document live: they all end with this call.
        return _read(_thread.parser.parse(record), record, wanted)
    except (ValueError, TypeError, RuntimeError, _Unusual):
        return None


def _read(document: Any, record: bytes, wanted: Wanted) -> dict[str, Any]:
    # as_buffer flattens nested arrays in silence. Every array opens one bracket (a bracket inside a string only makes
    # the count too high), so with as many brackets as arrays that are members none is nested.
    first = record.find(b"[")
    if first >= 0 and record.find(b"[", first + 1) >= 0 and record.count(b"[") != _arrays(document):
        raise _Unusual
    return _members(document, record, wanted)


def _members(json_object: Any, record: bytes, wanted: Wanted) -> dict[str, Any]:
    present = _names(json_object)
    members = {}
    for name, member in wanted.items():
        if name in present:
            value = json_object[name]
            plain = member is _VALUE and type(value) in _PLAIN
            members[name] = value if plain else _member(value, name, record, member)
    return members


def _member(value: Any, name: str, record: bytes, member: Member | Wanted) -> Any:
    """A member that is no plain value."""
    if (member is _KEYS or member is _HEXADECIMAL_KEYS) and isinstance(value, simdjson.Array):
        keys = keys_of_json_array(value, hexadecimal=member is _HEXADECIMAL_KEYS)
        if keys is not None:
            return keys
    elif member is _VALUE and isinstance(value, float):
        return NumberText(_number_text(record, name))
    elif not isinstance(member, Member) and isinstance(value, simdjson.Object):
        return _members(value, record, member)
    raise _Unusual


def _names(json_object: Any) -> frozenset[str]:
    names = list(json_object)
    present = frozenset(names)
    # Of a name given twice simdjson finds the first, the slow readers the last.
    if len(present) != len(names):
        raise _Unusual
    return present


def _arrays(json_object: Any) -> int:
    """Arrays that are members of it, or of objects in it."""
    count = 0
    for name in _names(json_object):
        value = json_object[name]
        if isinstance(value, simdjson.Array):
            count += 1
        elif isinstance(value, simdjson.Object):
            count += _arrays(value)
    return count


def _number_text(record: bytes, name: str) -> str:
    # A record without backslashes has a quote nowhere but around a string, so this finds names only.
    found = _number_pattern(name).findall(record)
    if len(found) != 1:
        raise _Unusual
    return bytes(found[0]).decode()


@lru_cache
def _number_pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"' + re.escape(name.encode()) + rb'"\s*:\s*([-+.0-9eE]+)')
