"""Windows of a trace, read by threads ahead of their use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

from litehit.window import Window

R = TypeVar("R")


def read_ahead(windows: Iterable[Window], read: Callable[[Window], R], pool: Executor, workers: int) -> Iterator[R]:
    """What is read from each window, in their order.

    Args:
        windows: taken from their file by one thread, in order.
        read: reads one; used by many threads.
        pool: where that is done.
        workers: its threads; so many windows, and one more, are under way.
    """
    coming = iter(windows)

    def read_next(following: Future[Window | None]) -> tuple[R] | None:
        window = following.result()
        return None if window is None else (read(window),)

    under_way: deque[Future[tuple[R] | None]] = deque()
    with ThreadPoolExecutor(1, "litehit-read-ahead") as file:
        try:
            while True:
                while len(under_way) <= workers:
                    under_way.append(pool.submit(read_next, file.submit(next, coming, None)))
                done = under_way.popleft().result()
                if done is None:
                    return
                yield done[0]
        finally:
            for future in under_way:
                future.cancel()
