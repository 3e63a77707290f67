"""Instants as people and programs send them."""

from __future__ import annotations

import re

from service.api.windows import format_time, parse_time

_SECONDS = re.compile(r"[1-9]\d{9,10}", re.ASCII)
_MILLISECONDS = re.compile(r"[1-9]\d{11,12}", re.ASCII)


def parse_instant(text: str) -> int:
    """Nanoseconds since the epoch, as `parse_time`, of a text that is not likely to be in another unit.

    Raises:
        ValueError: `parse_time` refuses it, or it is an integer that is a time of our days in seconds or milliseconds,
            and as nanoseconds would select nothing; the message says what to send.
    """
    nanoseconds = parse_time(text)
    for pattern, unit, factor in ((_SECONDS, "seconds", 10**9), (_MILLISECONDS, "milliseconds", 10**6)):
        if pattern.fullmatch(text):
            meant = nanoseconds * factor
            raise ValueError(
                f"looks like {unit} since the epoch, but integers are nanoseconds; for {_shown(meant)} send {meant}, "
                f"or if {format_time(nanoseconds)} is meant, send that"
            )
    return nanoseconds


def _shown(nanoseconds: int) -> str:
    return format_time(nanoseconds) if nanoseconds < 2**63 else "that"
