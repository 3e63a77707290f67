"""How far a long command is: a bar on a terminal, a plain line now and then elsewhere; always on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

_PLAIN_LINE_SECONDS = 10.0


class Meter(Protocol):
    """Told how far the work is."""

    def __call__(self, items: int, position: int) -> None:
        """So many items are done, up to this position in the total."""


@contextmanager
def progress(verb: str, noun: str, total: int | None, clock: Callable[[], float] = time.monotonic) -> Iterator[Meter]:
    """Show progress while the block runs.

    Args:
        verb: what is being done, such as `publishing`.
        noun: what the items are, in plural.
        total: the last position (the time left is estimated from it); None where the end is not known.
        clock: seconds that never go back.
    """
    from rich.console import Console

    console = Console(stderr=True)
    started = clock()

    def rate(items: int) -> float:
        return items / max(clock() - started, 1e-9)

    if console.is_terminal:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[items]:,} " + noun),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(verb, total=total, items=0, rate=0.0)
            yield lambda items, position: bar.update(task, completed=position, items=items, rate=rate(items))
        return

    shown = started

    def line(items: int, position: int) -> None:
        nonlocal shown
        now = clock()
        if now - shown < _PLAIN_LINE_SECONDS:
            return
        shown = now
        left = ""
        if total and position:
            seconds = round((now - started) * (total - position) / position)
            left = f", {position / total:.0%}, {timedelta(seconds=max(0, seconds))} left"
        console.print(f"{verb}: {items:,} {noun}, {rate(items):,.0f}/s{left}", soft_wrap=True, highlight=False)

    yield line
