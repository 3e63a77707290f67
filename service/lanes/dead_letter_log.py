"""Tells of dead letters in the log, without a line for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog

from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER
from service.records import OutputRecord

log = structlog.get_logger()

_QUIET_SECONDS = 60.0


class DeadLetterLog:
    """Warns of the first dead letter of a partition and reason at once, then once a minute of how many more came.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[int, str], float] = {}
        self._untold: dict[tuple[int, str], int] = {}

    def note(self, dead_letters: Sequence[OutputRecord]) -> None:
        """Dead letters were handed over."""
        now = self._clock()
        for record in dead_letters:
            headers = dict(record.headers)
            reason = (headers[REASON_HEADER] or b"").decode()
            key = record.partition, reason
            count = self._untold.get(key, 0) + 1
            if key in self._told and now - self._told[key] < _QUIET_SECONDS:
                self._untold[key] = count
                continue
            self._told[key] = now
            self._untold[key] = 0
            log.warning(
                "dead_letters",
                partition=record.partition,
                reason=reason,
                count=count,
                latest=(headers[SOURCE_HEADER] or b"").decode(),
                error=(headers[ERROR_HEADER] or b"").decode(errors="replace"),
            )
