"""Room that a thread uses again and again: new memory costs more than what is written there."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Scratch(threading.local):
    """An array for each thread, as long as the longest that it has asked for.

    Args:
        dtype: of its elements.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype)

    def room(self, count: int) -> NDArray[Any]:
        """At least so many elements, whose values mean nothing; the thread's next call may give them again."""
        if count > len(self._room):
            self._room = np.empty(count, self._room.dtype)
        return self._room
