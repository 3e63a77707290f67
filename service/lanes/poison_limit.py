"""When a lane's dead letters are too many to be single bad records, so that the lane must stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from service.settings import Settings


@dataclass(frozen=True, slots=True)
class PoisonLimits:
    """How many dead letters a lane takes for single bad records.

    Attributes:
        consecutive: dead letters in a row; 0 = no limit.
        share: of the last `window` requests, judged once there are so many; 1.0 = no limit.
        window: requests, dead letters included.
    """

    consecutive: int
    share: float
    window: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits that the settings name."""
        return cls(settings.dead_letter_max_consecutive, settings.dead_letter_max_share, settings.dead_letter_window)


NO_LIMITS = PoisonLimits(consecutive=0, share=1.0, window=1)


class PoisonWatch:
    """Counts one lane's dead letters among its requests; ignored records are none of either.

    Records that a restore replays are counted too, and not judged: what they became is committed. Those before the
    snapshot that it begins with are not counted again.
    """

    def __init__(self, limits: PoisonLimits) -> None:
        self._limits = limits
        self._row = 0
        self._last = bytearray(limits.window)  # 1 for each dead letter; a ring
        self._seen = 0
        self._dead = 0

    def passed(self, requests: int) -> None:
        """Count the next requests, which are no dead letters."""
        if not requests:
            return
        window = self._limits.window
        place = self._seen % window
        for first, end in ((place, min(place + requests, window)), (0, min(place + requests - window, place))):
            if first < end:
                self._dead -= self._last.count(1, first, end)
                self._last[first:end] = bytes(end - first)
        self._seen += requests
        self._row = 0

    def died(self) -> str | None:
        """Count the next request, which is a dead letter; which limit is exceeded now, None where none is."""
        place = self._seen % self._limits.window
        self._dead += 1 - self._last[place]
        self._last[place] = 1
        self._seen += 1
        self._row += 1
        return self._exceeded()

    def _exceeded(self) -> str | None:
        limits = self._limits
        if 0 < limits.consecutive < self._row:
            return (
                f"{self._row} dead letters in a row, more than the limit of {limits.consecutive} "
                f"(LITEHIT_DEAD_LETTER_MAX_CONSECUTIVE)"
            )
        if self._seen >= limits.window and self._dead > limits.share * limits.window:
            return (
                f"{self._dead} dead letters among the last {limits.window} requests, more than the limit of "
                f"{limits.share:g} of them (LITEHIT_DEAD_LETTER_MAX_SHARE)"
            )
        return None
