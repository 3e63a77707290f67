"""A number of things, for a sentence."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Such as `1 record` and `2 records`; the noun's plural is made with an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
