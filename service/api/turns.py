"""How many calls may do something at the same time, and how many may wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service.errors import ServiceError


class TooManyCalls(ServiceError):
    """As many calls as may are reading facts, and as many as may wait to."""


class Turns:
    """So many calls at a time.

    Args:
        at_once: how many.
        queue: how many more may wait for their turn; a further one is refused.
    """

    def __init__(self, at_once: int, queue: int = 0) -> None:
        self._free = threading.Semaphore(at_once)
        self._admitted = threading.Semaphore(at_once + queue)
        self._allowed = f"{at_once} calls are reading facts already" + (f" and {queue} wait to" if queue else "")

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn, given back at the end.

        Raises:
            TooManyCalls: none is free, nor a place to wait.
        """
        if not self._admitted.acquire(blocking=False):
            raise TooManyCalls(f"{self._allowed}, which is all that may")
        try:
            with self._free:
                yield
        finally:
            self._admitted.release()
