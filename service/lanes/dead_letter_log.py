"""Tells of dead letters in the log, without a line for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import structlog

from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER
from service.records import OutputRecord

log = structlog.get_logger()

_QUIET_SECONDS = 60.0


@dataclass(slots=True)
class _Kind:
    """Dead letters of one partition and reason: the last of those that are not told yet, and when others were."""

    latest: OutputRecord
    untold: int = 0
    told_at: float = -inf


class DeadLetterLog:
    """Warns of the first dead letter of a partition and reason at once, then once a minute of how many more came.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[tuple[int, str], _Kind] = {}

    def note(self, dead_letters: Sequence[OutputRecord]) -> None:
        """Dead letters were handed over."""
        for record in dead_letters:
            key = record.partition, (dict(record.headers)[REASON_HEADER] or b"").decode()
            kind = self._kinds.setdefault(key, _Kind(record))
            kind.latest = record
            kind.untold += 1
            self._tell_if_due(key, kind)

    def tell_rest(self, *, at_end: bool = False) -> None:
        """Warn of those that are not told yet where the last warning is a minute old, or no other will come."""
        for key, kind in self._kinds.items():
            if kind.untold:
                self._tell_if_due(key, kind, at_end=at_end)

    def _tell_if_due(self, key: tuple[int, str], kind: _Kind, *, at_end: bool = False) -> None:
        now = self._clock()
        if now - kind.told_at < _QUIET_SECONDS and not at_end:
            return
        partition, reason = key
        headers = dict(kind.latest.headers)
        log.warning(
            "dead_letters",
            partition=partition,
            reason=reason,
            count=kind.untold,
            latest=(headers[SOURCE_HEADER] or b"").decode(),
            error=(headers[ERROR_HEADER] or b"").decode(errors="replace"),
        )
        kind.untold, kind.told_at = 0, now
