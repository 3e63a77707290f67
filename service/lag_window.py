"""Holding back who writes to a topic that keeps little: what was sent and is not consumed yet stays under a limit."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

_POLL_SECONDS = 0.02


class LagWindow:
    """Counts the bytes that were sent and that the consumer group has not committed yet.

    The bytes of all partitions are counted together, so no partition alone can hold more.

    Args:
        limit_bytes: how many may be outstanding.
        committed: given partitions, the group's committed offset of each; -1 or less where it has none.
        wait: called while waiting, with a time in seconds; delivery reports must arrive inside it.
        stalled: called while waiting, with the seconds since anything was consumed; it may raise.
    """

    def __init__(
        self,
        limit_bytes: int,
        committed: Callable[[Iterable[int]], Mapping[int, int]],
        wait: Callable[[float], object] = time.sleep,
        stalled: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._limit = limit_bytes
        self._committed = committed
        self._wait = wait
        self._stalled = stalled
        self._delivered: defaultdict[int, deque[tuple[int, int]]] = defaultdict(deque)
        self._outstanding = 0

    def sent(self, size: int) -> None:
        """A record of so many bytes is on its way."""
        self._outstanding += size

    def delivered(self, partition: int, offset: int, size: int) -> None:
        """A record that was sent stands at this offset."""
        self._delivered[partition].append((offset, size))

    def is_full(self) -> bool:
        """Whether what is outstanding now exceeds the limit."""
        if self._outstanding > self._limit:
            self._consume(self._committed(list(self._delivered)))
        return self._outstanding > self._limit

    def make_room(self) -> None:
        """Wait until what is outstanding fits the limit."""
        least, since = self._outstanding, time.monotonic()
        while self.is_full():
            if self._outstanding < least:
                least, since = self._outstanding, time.monotonic()
            self._stalled(time.monotonic() - since)
            self._wait(_POLL_SECONDS)

    def _consume(self, committed: Mapping[int, int]) -> None:
        for partition, next_offset in committed.items():
            records = self._delivered[partition]
            while records and records[0][0] < next_offset:
                self._outstanding -= records.popleft()[1]
