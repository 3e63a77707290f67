"""The slow, obvious reference: a list as the LRU stack, and one real LRU cache for each capacity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litehit.curves import Int64Array
from schemas.fact import HitCurve


class ReferenceStack:
    """The core of SPEC section 4 word for word, in quadratic time.

    Args:
        ttl: as in `LiteHit`.
    """

    def __init__(self, ttl: int = 0) -> None:
        self.ttl = ttl
        self.clock: int | None = None
        self.stack: list[int] = []  # most recent first
        self.last_access: dict[int, int] = {}

    def alive(self, key: int) -> bool:
        if key not in self.last_access:
            return False
        return self.ttl == 0 or self.clock is None or self.clock - self.last_access[key] < self.ttl

    def required(self, keys: Sequence[int], now: int | None = None) -> list[int]:
        """Required capacity of each block before the first miss, on the snapshot; then commit."""
        if now is not None:
            self.clock = now if self.clock is None else max(self.clock, now)
        required = []
        for key in keys:
            if not self.alive(key):
                break
            required.append(1 + self.stack.index(key))
        for key in reversed(list(dict.fromkeys(keys))):
            if key in self.last_access:
                self.stack.remove(key)
            self.stack.insert(0, key)
            self.last_access[key] = 0 if self.clock is None else self.clock
        return required

    def process_request(self, keys: Sequence[int], now: int | None = None) -> HitCurve:
        return encode(self.required(keys, now))

    def alive_blocks(self) -> list[int]:
        return [key for key in self.stack if self.alive(key)]


def encode(required: Sequence[int]) -> HitCurve:
    """Running maximum, made strictly ascending, run-length encoded."""
    curve: list[tuple[int, int]] = []
    highest = last = 0
    for capacity in required:
        highest = max(highest, capacity)
        threshold = max(highest, last + 1)
        if curve and threshold == last + 1:
            start, run = curve[-1]
            curve[-1] = (start, run + 1)
        else:
            curve.append((threshold, 1))
        last = threshold
    return tuple(curve)


class ReferenceCache:
    """One LRU cache of a fixed capacity in blocks (None: infinite): snapshot hits, tail-to-head touches."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.stack: list[int] = []

    def hits(self, keys: Sequence[int]) -> int:
        hits = 0
        for key in keys:
            if key not in self.stack:
                break
            hits += 1
        for key in reversed(list(dict.fromkeys(keys))):
            if key in self.stack:
                self.stack.remove(key)
            self.stack.insert(0, key)
            if self.capacity is not None:
                del self.stack[self.capacity :]
        return hits


def flatten(requests: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
    """Keys int64[N] and offsets int64[R + 1] of R requests."""
    offsets = np.zeros(len(requests) + 1, np.int64)
    np.cumsum([len(request) for request in requests], out=offsets[1:])
    return np.array([key for request in requests for key in request], np.int64), offsets
