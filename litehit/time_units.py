"""Units of time in nanoseconds, in which every time is kept."""

from __future__ import annotations

NS_PER_US = 10**3
NS_PER_MS = 10**6
NS_PER_S = 10**9

_UNITS = (("seconds", NS_PER_S), ("milliseconds", NS_PER_MS), ("microseconds", NS_PER_US))
_EARLIEST_S, _LATEST_S = 10**9, 41 * 10**8  # 2001 to 2099


def other_unit(timestamp_ns: int) -> str | None:
    """What to say of a time that as nanoseconds since 1970 is in its first weeks, and of our days in another unit."""
    for unit, factor in _UNITS:
        if _EARLIEST_S <= timestamp_ns * factor // NS_PER_S < _LATEST_S:
            return (
                f"timestamp_ns {timestamp_ns} looks like {unit} since 1970, but is taken as nanoseconds, so that times "
                f"to live are {factor:,} times too long and windows find nothing; send {timestamp_ns * factor}"
            )
    return None
