"""How long to wait before something that failed is tried again."""

from __future__ import annotations

from collections.abc import Sequence


class Backoff:
    """Waits that grow with each failure in a row.

    Args:
        seconds: of the first failure, the second and so on; the last holds for all after it.
    """

    def __init__(self, seconds: Sequence[float]) -> None:
        self._seconds = seconds
        self._failures = 0

    def failed(self) -> float:
        """It failed once more; the seconds to wait."""
        seconds = self._seconds[min(self._failures, len(self._seconds) - 1)]
        self._failures += 1
        return seconds

    def succeeded(self) -> None:
        """The failures before are forgotten."""
        self._failures = 0
