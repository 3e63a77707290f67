"""Places where a test can kill this process: in production each is a look at an empty dictionary.

`LITEHIT_CRASH_POINT=NAME:N` makes the N-th pass of a point send SIGKILL to its own process, as a crash would, with no
clean-up of any kind. It is read once, at start.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Iterator
from enum import StrEnum

VARIABLE = "LITEHIT_CRASH_POINT"


class CrashPoint(StrEnum):
    """The points, in the order of a record's way."""

    BEFORE_PRODUCE = "before-produce"
    """A batch is processed; nothing of it is sent."""
    MID_TRANSACTION = "mid-transaction"
    """Its facts and dead letters are on their way."""
    BEFORE_COMMIT = "before-commit"
    """Its offsets are sent too; the commit is not asked for."""
    AFTER_COMMIT = "after-commit"
    """It is committed; this process has noted nothing of it."""
    MID_SNAPSHOT = "mid-snapshot"
    """A snapshot's bytes are made; the store has none of them."""
    MID_PUBLISH = "mid-publish"
    """A file of the store, whichever, is written under its temporary name."""
    AFTER_PUBLISH = "after-publish"
    """A segment is in the store; this process has noted nothing of it."""
    AFTER_MERGE = "after-merge"
    """Segments are merged into the first of them; the others are still there."""
    MID_DELETE = "mid-delete"
    """A file whose offsets another covers is deleted; the next one is not."""
    MID_EXPIRE = "mid-expire"
    """The facts of a segment are removed by retention; those of the next are not."""


def crash_point(point: CrashPoint) -> None:
    """Die here if this is the pass that was asked for."""
    passes = _planted.get(point)
    if passes is not None and next(passes) == 1:
        signal.pthread_kill(threading.get_ident(), signal.SIGKILL)  # this thread goes no step further


def _read(text: str | None) -> dict[CrashPoint, Iterator[int]]:
    """Countdowns, which `next` takes in one step whatever the threads."""
    if text is None:
        return {}
    name, _, number = text.partition(":")
    if name not in set(CrashPoint) or not number.isdigit() or int(number) < 1:
        raise ValueError(f"{VARIABLE} is {text!r}; give NAME:N, N from 1, NAME one of {', '.join(CrashPoint)}")
    return {CrashPoint(name): itertools.count(int(number), -1)}


_planted = _read(os.environ.get(VARIABLE))
