"""Units of time in nanoseconds, in which every time is kept."""

from __future__ import annotations

NS_PER_US = 10**3
NS_PER_MS = 10**6
NS_PER_S = 10**9
