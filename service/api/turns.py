"""How many calls may do something at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.errors import ServiceError


class TooManyCalls(ServiceError):
    """As many calls as may are reading facts."""


class Turns:
    """So many calls at a time; a further one is refused rather than made to wait.

    Args:
        at_once: how many.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.Semaphore(at_once)
        self._at_once = at_once

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn, given back at the end.

        Raises:
            TooManyCalls: none is free.
        """
        if not self._free.acquire(blocking=False):
            raise TooManyCalls(f"{self._at_once} calls are reading facts already, which is all that may")
        try:
            yield
        finally:
            self._free.release()
