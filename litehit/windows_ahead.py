"""Windows of a trace, read by threads ahead of their use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

W = TypeVar("W")
R = TypeVar("R")


def read_ahead(
    windows: Iterable[W], read: Callable[[W], R], pool: Executor, workers: int, stop: Callable[[], None]
) -> Generator[R]:
    """What is read from each window, in their order. Close it where not all of them are wanted.

    Args:
        windows: taken from their file by one thread, in order.
        read: reads one; used by many threads.
        pool: where that is done.
        workers: its threads; so many windows, and one more, are under way.
        stop: called at the end; windows that come slowly must not be waited for any more.
    """
    coming = iter(windows)

    def begin_next() -> Future[R] | None:
        window = next(coming, None)
        # Begun when it is there: a thread of the pool that waited for it would be missed.
        return None if window is None else pool.submit(read, window)

    under_way: deque[Future[Future[R] | None]] = deque()
    with ThreadPoolExecutor(1, "litehit-read-ahead") as file:
        try:
            while True:
                while len(under_way) <= workers:
                    under_way.append(file.submit(begin_next))
                begun = under_way.popleft().result()
                if begun is None:
                    return
                yield begun.result()
        finally:
            stop()
            for future in under_way:
                future.cancel()
