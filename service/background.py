"""Work beside a role's loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(name: str, work: Callable[[], T]) -> Future[T]:
    """Do some work in a thread of its own, which does not keep the process from ending as an executor's would."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            done = work()
        except BaseException as error:
            result.set_exception(error)
        else:
            result.set_result(done)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result
