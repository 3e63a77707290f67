"""Instants in another unit than nanoseconds."""

from __future__ import annotations

import re

from litehit.time_units import NS_PER_MS, NS_PER_S
from service.api.windows import format_time

_SECONDS = re.compile(r"[1-9]\d{9,10}", re.ASCII)
_MILLISECONDS = re.compile(r"[1-9]\d{11,12}", re.ASCII)


def check_unit(text: str, earliest_ns: int) -> None:
    """Refuse an integer that as nanoseconds lies before all facts, and is a time of our days in another unit.

    Facts may be as early: the times of many traces count from their start.

    Args:
        text: an instant that was sent.
        earliest_ns: time of the earliest fact, in nanoseconds.

    Raises:
        ValueError: the message says what was probably meant.
    """
    for pattern, unit, factor in ((_SECONDS, "seconds", NS_PER_S), (_MILLISECONDS, "milliseconds", NS_PER_MS)):
        if pattern.fullmatch(text) and int(text) < earliest_ns:
            meant = int(text) * factor
            shown = f"for {format_time(meant)} " if meant < 2**63 else ""
            raise ValueError(
                f"looks like {unit} since the epoch, but integers are nanoseconds; {shown}send {meant}, or if "
                f"{format_time(int(text))} is meant, send that: the facts begin at {format_time(earliest_ns)}"
            )
