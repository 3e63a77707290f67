"""Requests that a producer sent again: the same trace id, within the last ones of an instance."""

from __future__ import annotations

from collections import deque
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

MAX_REPEATS_WINDOW = 1_000_000

DIGEST_BYTES = 16
"""Of a trace id; so the memory does not depend on what producers call their requests."""

Digests = npt.NDArray[np.uint64]
"""uint64[2 n]: those of n trace ids, oldest first."""

NO_DIGESTS: Digests = np.empty(0, np.uint64)


class RecentTraces:
    """The last trace ids of one instance.

    Memory: about 150 bytes an id.

    Args:
        window: so many are remembered; 0: none, and nothing is a repeat.
        digests: what it remembers to begin with.
    """

    def __init__(self, window: int, digests: Digests = NO_DIGESTS) -> None:
        rows = digests.tobytes()
        self._order = deque((rows[at : at + DIGEST_BYTES] for at in range(0, len(rows), DIGEST_BYTES)), maxlen=window)
        self._known = set(self._order)
        self._window = window

    def is_repeat(self, trace_id: str) -> bool:
        """Whether an id is remembered; if not, it is from here on. An empty one never is."""
        if not self._window or not trace_id:
            return False
        digest = blake2b(trace_id.encode(), digest_size=DIGEST_BYTES).digest()
        if digest in self._known:
            return True
        if len(self._order) == self._window:
            self._known.remove(self._order[0])
        self._order.append(digest)
        self._known.add(digest)
        return False

    def resized(self, window: int) -> RecentTraces:
        """The same with another window."""
        return RecentTraces(window, self.digests())

    def digests(self) -> Digests:
        """What it remembers; a copy, quickly made."""
        return np.frombuffer(b"".join(self._order), np.uint64)


class RecentByInstance:
    """The last trace ids of each instance.

    Args:
        window: so many are remembered of each; 0: none, and nothing is a repeat.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._recent: dict[str, RecentTraces] = {}

    def restore(self, instance_id: str, digests: Digests) -> None:
        """Go on with what was remembered of an instance."""
        self._recent[instance_id] = RecentTraces(self.window, digests)

    def is_repeat(self, instance_id: str, trace_id: str) -> bool:
        """See `RecentTraces.is_repeat`."""
        recent = self._recent.get(instance_id)
        if recent is None:
            recent = self._recent[instance_id] = RecentTraces(self.window)
        return recent.is_repeat(trace_id)

    def digests(self, instance_id: str) -> Digests:
        """What is remembered of an instance."""
        recent = self._recent.get(instance_id)
        return NO_DIGESTS if recent is None else recent.digests()

    def resize(self, window: int) -> None:
        """Remember so many from here on."""
        self.window = window
        self._recent = {instance_id: one.resized(window) for instance_id, one in self._recent.items()}
