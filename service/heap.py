"""Keeps the C library from holding on to memory that a long-running process has given back."""

from __future__ import annotations

import ctypes
import os

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

_LARGE_BYTES = 16 * 2**20
_KEPT_BYTES = 32 * 2**20
_HEAPS = 4


def give_back_early() -> None:
    """Let freed memory go back to the system soon, in a process that was just started.

    By itself glibc adapts to what it sees: once an array of 20 MB was freed, arrays of that size come from a heap, each
    heap keeps 40 MB that nobody uses, and there are eight heaps for each processor, one after another of which is used
    by the threads that come and go. So a service whose work is always the same grows for an hour. Fixed thresholds make
    it flat within a minute.

    Does nothing where the C library is another, or where the environment sets glibc's options itself (`MALLOC_...`,
    `GLIBC_TUNABLES`).
    """
    if any(name == "GLIBC_TUNABLES" or name.startswith("MALLOC_") for name in os.environ):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for option, value in (
        (_M_MMAP_THRESHOLD, _LARGE_BYTES),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_ARENA_MAX, _HEAPS),
    ):
        mallopt(option, value)
