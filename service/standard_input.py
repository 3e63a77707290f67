"""Standard input, read as it comes; another thread can end the waiting for more."""

from __future__ import annotations

import os
import sys
from io import BufferedReader, UnsupportedOperation
from select import select
from typing import cast


class StandardInput:
    """What is there is read at once: a tap may be slow to write more."""

    def __init__(self) -> None:
        self._stream = cast("BufferedReader", sys.stdin.buffer)
        try:
            self._descriptor: int | None = self._stream.fileno()
        except UnsupportedOperation:
            self._descriptor = None  # it lies in memory, and never waits
        self._woken, self._waker = os.pipe()

    def read(self, count: int) -> bytes:
        """At most so many bytes; none at the end, and once it is stopped."""
        if self._descriptor is not None and self._woken in select([self._descriptor, self._woken], [], [])[0]:
            return b""
        # What it returns is all that it has taken, so none is left where `select` would not see it.
        return self._stream.read1(count)

    def stop(self) -> None:
        """End the reading, also one under way."""
        os.write(self._waker, b"\0")

    def close(self) -> None:
        """Give back what it holds; standard input itself stays open."""
        os.close(self._woken)
        os.close(self._waker)
