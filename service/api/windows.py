"""Windows of time, half open and exact to the nanosecond."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.time_units import NS_PER_S

_LOST_PLUS = re.compile(r"\d \d\d:\d\d$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_NS, _MAX_NS = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"-?\d{1,4000}", re.ASCII)  # int() refuses more digits
_RFC_3339 = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})[Tt ](?P<clock>\d{2}:\d{2}:\d{2})(?:\.(?P<fraction>\d+))?"
    r"(?P<offset>[Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)


def parse_time(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time (up to nine digits of a second) or of integer nanoseconds.

    Raises:
        ValueError: the text is neither, or lies outside 64-bit nanoseconds; the message says what to send.
    """
    nanoseconds = int(text) if _INTEGER.fullmatch(text) else _parse_rfc_3339(text)
    if not _MIN_NS <= nanoseconds <= _MAX_NS:
        raise ValueError(
            f"lies outside 64-bit nanoseconds, {format_time(_MIN_NS)} to {format_time(_MAX_NS)}; "
            f"send a time between them, or leave it out for an open end"
        )
    return nanoseconds


def _parse_rfc_3339(text: str) -> int:
    match = _RFC_3339.fullmatch(text)
    if match is None:
        hint = " (a + in a URL is written %2B)" if _LOST_PLUS.search(text) else ""
        raise ValueError(
            "is neither integer nanoseconds nor an RFC 3339 time with its offset; "
            f"send for example 2025-01-31T09:30:00.123456789Z{hint}"
        )
    fraction = match["fraction"] or ""
    if len(fraction) > 9:
        raise ValueError(f"has {len(fraction)} digits of a second; send nine at most, down to the nanosecond")
    try:
        whole = datetime.fromisoformat(f"{match['date']}T{match['clock']}{match['offset'].upper()}")
        seconds = (whole - _EPOCH) // timedelta(seconds=1)
    except ValueError as error:
        raise ValueError(f"is no time of the calendar ({error}); send an existing one") from None
    return seconds * NS_PER_S + int(fraction.ljust(9, "0"))


def format_time(nanoseconds: int) -> str:
    """RFC 3339 in UTC with nine digits of a second; every int64 has one."""
    seconds, fraction = divmod(nanoseconds, NS_PER_S)
    return f"{(_EPOCH + timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%S')}.{fraction:09d}Z"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The instants t with `from_ns <= t < to_ns`.

    Attributes:
        from_ns: first instant inside, in nanoseconds; None = open.
        to_ns: first instant past the end, in nanoseconds; None = open.
    """

    from_ns: int | None = None
    to_ns: int | None = None

    def overlaps(self, first_ns: int, last_ns: int) -> bool:
        """Whether some instant from `first_ns` to `last_ns`, both included, may be inside."""
        return (self.from_ns is None or last_ns >= self.from_ns) and (self.to_ns is None or first_ns < self.to_ns)

    def covers(self, first_ns: int, last_ns: int) -> bool:
        """Whether every instant from `first_ns` to `last_ns`, both included, is inside."""
        return (self.from_ns is None or first_ns >= self.from_ns) and (self.to_ns is None or last_ns < self.to_ns)

    def mask(self, times_ns: Int64Array) -> NDArray[np.bool_]:
        """Which of the given times are inside: bool[R] for int64[R]."""
        inside = np.ones(len(times_ns), np.bool_)
        if self.from_ns is not None:
            inside &= times_ns >= self.from_ns
        if self.to_ns is not None:
            inside &= times_ns < self.to_ns
        return inside

    def touched(self, first_ns: Int64Array, last_ns: Int64Array) -> NDArray[np.bool_]:
        """`overlaps` of N spans: bool[N] for int64[N] each."""
        touched = np.ones(len(first_ns), np.bool_)
        if self.from_ns is not None:
            touched &= last_ns >= self.from_ns
        if self.to_ns is not None:
            touched &= first_ns < self.to_ns
        return touched

    def split(self, first_ns: int, end_ns: int) -> tuple[TimeWindow, list[TimeWindow]]:
        """The instants from `first_ns` to before `end_ns`, of which some are inside: those, and the others."""
        inside = TimeWindow(
            first_ns if self.from_ns is None else max(first_ns, self.from_ns),
            end_ns if self.to_ns is None else min(end_ns, self.to_ns),
        )
        outside = [TimeWindow(first_ns, inside.from_ns), TimeWindow(inside.to_ns, end_ns)]
        return inside, [one for one in outside if one.from_ns != one.to_ns]
