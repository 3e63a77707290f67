"""A call into a library that may never return, waited for no longer than it should take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from service.background import in_background

T = TypeVar("T")


class NotReturned(Exception):
    """The call has not come back in its time; its thread is left behind."""


def bounded(call: Callable[[], T], seconds: float) -> T:
    """What the call returns or raises.

    Raises:
        NotReturned: it did neither in so many seconds; it may still do so later, when nobody listens.
    """
    # Its thread does not keep a process from ending, though the call may never return.
    outcome = in_background("bounded-call", call)
    if not wait([outcome], seconds).done:
        raise NotReturned
    return outcome.result()
