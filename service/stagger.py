"""What every partition does from time to time, kept from falling on one moment."""

from __future__ import annotations

_GOLDEN = 0.618033988749895
"""Its multiples, modulo 1, keep apart from each other, however many they are and whichever a process has."""


def first_wait(seconds: float, partition: int, shift: float = 0.0) -> float:
    """How long a partition's regular work waits the first time: half an interval to a whole one.

    Partitions begin together, when a process starts or is assigned them. That all of them then wrote their files
    together, each time, would hold up for seconds what is to go on meanwhile.

    Args:
        seconds: the interval, which it waits from then on.
        partition: which.
        shift: another one for each kind of work that may hold up the others.
    """
    return seconds * (1 - 0.5 * ((partition * _GOLDEN + shift) % 1))
