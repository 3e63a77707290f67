"""Units of time in nanoseconds, in which every time is kept."""

from __future__ import annotations

NS_PER_US = 10**3
NS_PER_MS = 10**6
NS_PER_S = 10**9

_UNITS = (("seconds", NS_PER_S), ("milliseconds", NS_PER_MS), ("microseconds", NS_PER_US))


def other_unit(timestamp_ns: int, now_ns: int, years: int, what: str = "timestamp_ns") -> str | None:
    """What to say of a time that in another unit than nanoseconds would be within so many years of now.

    Times that count from a trace's start may meet that by chance: within one year in one of a thousand.
    """
    for unit, factor in _UNITS:
        if abs(timestamp_ns * factor - now_ns) < years * _YEAR_NS:
            return (
                f"{what} {timestamp_ns} looks like {unit} since 1970, but is taken as nanoseconds; where {unit} are "
                f"meant, send {timestamp_ns * factor}"
            )
    return None


_YEAR_NS = 365 * 86_400 * NS_PER_S
