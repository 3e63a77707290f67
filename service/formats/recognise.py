"""Which format a file is of, told from the members of its first records."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litehit.errors import TraceError
from service.format_names import FormatName
from service.formats.base import FormatError
from service.formats.fields import read_object

FIRST_LINES = 8
"""So many are looked at."""


@dataclass(frozen=True, slots=True)
class Signs:
    """By what the records of a format are known.

    Attributes:
        needed: members that every record has.
        own: members that tell it from another format with the same needed ones; the more, the likelier.
        kinds: values of the member `type`; None: any, or none.
    """

    needed: frozenset[str]
    own: frozenset[str] = frozenset()
    kinds: frozenset[str] | None = None


def _signs(needed: str, own: str = "", kinds: str | None = None) -> Signs:
    return Signs(frozenset(needed.split()), frozenset(own.split()), None if kinds is None else frozenset(kinds.split()))


SIGNS = {
    FormatName.NATIVE: _signs("type", "block_keys input_token_len", "request get write register"),
    FormatName.TAIR: _signs(
        "type", "keys input_len query_type block_mask sw_size location_spec_names ttl_us", "request get write"
    ),
    FormatName.TAIR_PUBLISHER: _signs(
        "type", "source trigger_time_us keys", "GetCacheLocation StartWriteCache FinishWriteCache"
    ),
    FormatName.MOONCAKE: _signs("hash_ids input_length timestamp", "session_id delay"),
    FormatName.BAILIAN: _signs("hash_ids input_length timestamp chat_id", "chat_id parent_chat_id turn type"),
    FormatName.WEKA: _signs("hash_id_scope requests"),
    FormatName.DYNAMO: _signs("event_type", "schema request event_time_unix_ms event_source"),
    FormatName.LITELLM: _signs("prefix_block_hashes"),
    FormatName.SGLANG: _signs("hash_ids input_length block_size", "id"),
}
"""Of every format."""

_EVENTS = {FormatName.NATIVE, FormatName.TAIR}  # read alike


def recognise(source: str, lines: Sequence[bytes]) -> FormatName:
    """The format of a file.

    Args:
        source: name of the file, for errors.
        lines: its first `FIRST_LINES`, or all.

    Raises:
        TraceError: a line is of no format that is known, or the lines could be of two.
    """
    left = set(SIGNS)
    looked_at = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if not looked_at and line.strip() == b"{":  # one object over many lines: only a session is written so
            return FormatName.WEKA
        try:
            found = _formats_of(read_object(line))
        except FormatError as error:
            # No format has such a mark.
            other = "" if line.startswith(BOM_UTF8) else "; or name the format (--format)"
            raise TraceError(source, number, f"{error}{other}") from None
        if not left & found:
            raise TraceError(source, number, _no_format(found))
        left &= found
        looked_at += 1
    if not looked_at and len(lines) < FIRST_LINES:
        raise TraceError(source, None, "holds no record; see that it is the right file")
    if not looked_at:
        raise TraceError(source, None, f"has no record in its first {len(lines)} lines; name the format (--format)")
    if len(left) > 1:
        names = " or ".join(name for name in SIGNS if name in left)
        raise TraceError(source, None, f"could be of format {names}; name the one it is (--format)")
    return left.pop()


def looks_rather_like(line: bytes, name: str) -> str | None:
    """What other formats than the given one a line has the signs of, for a sentence; None: of none.

    Args:
        line: a record.
        name: the format that it is said to be of.
    """
    try:
        found = _formats_of(read_object(line))
    except FormatError:  # told where it is read
        return None
    if name in found or (name in _EVENTS and found <= _EVENTS):
        return None
    return " or ".join(each for each in SIGNS if each in found) or None


def _formats_of(record: dict[str, Any]) -> set[FormatName]:
    """Those whose signs the record has; of several, those of which it has most."""
    if "event_type" not in record and isinstance(record.get("event"), dict):
        record = record["event"]
    names, kind = record.keys(), record.get("type")
    fitting = {
        name: len(signs.own & names)
        for name, signs in SIGNS.items()
        if signs.needed <= names and (signs.kinds is None or (isinstance(kind, str) and kind in signs.kinds))
    }
    most = max(fitting.values(), default=0)
    return {name for name, count in fitting.items() if count == most}


def _no_format(found: set[FormatName]) -> str:
    if found:
        return f"is of format {' or '.join(sorted(found))}, but the lines before are not; name the format (--format)"
    return f"is of no format that is known ({', '.join(SIGNS)}); see that the file is a trace, or name the format"
