"""A call into a library that may never return, waited for no longer than it should take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class NotReturned(Exception):
    """The call has not come back in its time; its thread is left behind."""


def bounded(call: Callable[[], T], seconds: float) -> T:
    """What the call returns or raises.

    Raises:
        NotReturned: it did neither in so many seconds; it may still do so later, when nobody listens.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    # A daemon: a process that ends does not wait for a call that never returns.
    threading.Thread(target=run, name="bounded-call", daemon=True).start()
    if not wait([outcome], seconds).done:
        raise NotReturned
    return outcome.result()
