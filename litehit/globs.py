"""Which of two globs stands for more."""

from __future__ import annotations

import re
from functools import cache

_TOKEN = re.compile(r"\[[!^]?\]?[^\]]*\]|.", re.DOTALL)


def covers(wide: str, narrow: str) -> bool:
    """Whether everything that `narrow` matches is certainly matched by `wide`.

    A set in brackets is compared by its text alone, so some that do cover are not found.
    """
    wider, narrower = tuple(_TOKEN.findall(wide)), tuple(_TOKEN.findall(narrow))

    @cache
    def from_here(at: int, place: int) -> bool:
        if at == len(wider):
            return place == len(narrower)
        if wider[at] == "*" and from_here(at + 1, place):
            return True
        if place == len(narrower):
            return False
        if wider[at] == "*":
            return from_here(at, place + 1)
        same = wider[at] == narrower[place] or (wider[at] == "?" and narrower[place] != "*")
        return same and from_here(at + 1, place + 1)

    return from_here(0, 0)
