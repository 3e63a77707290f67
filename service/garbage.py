"""How often a process that makes much, and little of it in cycles, looks for cycles."""

from __future__ import annotations

import gc

_THRESHOLD = 50_000


def collect_seldom() -> None:
    """Let 50,000 objects more than before, and not Python's own 700, make the collector look for cycles.

    A batch of records makes thousands that live as long as it does and are in none: each would be looked at several
    times. What there is by now is taken to be the program itself, which is no garbage.
    """
    gc.set_threshold(_THRESHOLD)
    gc.freeze()
