"""The offline runner (SPEC section 7): a trace to `litehit_facts.csv`, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from litehit.atomic_file import atomic_file
from litehit.errors import OptionError, TraceError
from litehit.facts import FactBatch
from litehit.facts_csv import FACTS_FILE_NAME, write_header, write_rows
from litehit.registry import Registry
from litehit.repeats import MAX_REPEATS_WINDOW, RecentByInstance
from litehit.replay_lanes import Lanes
from litehit.request import check_instance_option
from litehit.targets import AS_NAMED, Routing
from litehit.window import Window
from litehit.window_requests import ReadWindow, WindowRequests
from litehit.windows_ahead import read_ahead

MAX_WORKERS = 256

Read: TypeAlias = Callable[[Window], ReadWindow]
"""Reads a window. Used by many threads."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a trace is replayed.

    Attributes:
        workers: threads that read windows, 1 to `MAX_WORKERS`; any number gives the same bytes.
        instance_id: the instance of lines that name none; None: the registry's only exact one.
        routing: whether requests go to other instances than the one they name.
        repeats_window: a request is ignored whose trace id is among so many last ones of its instance; 0: none is.
    """

    workers: int = 1
    instance_id: str | None = None
    routing: Routing = AS_NAMED
    repeats_window: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MAX_WORKERS:
            raise OptionError(f"workers {self.workers} is out of range; give 1 to {MAX_WORKERS}")
        if not 0 <= self.repeats_window <= MAX_REPEATS_WINDOW:
            raise OptionError(f"repeats_window {self.repeats_window} is out of range; give 0 to {MAX_REPEATS_WINDOW}")
        if self.instance_id is not None:
            check_instance_option(self.instance_id)

    def default_instance(self, registry: Registry) -> str | None:
        """The instance to give to the parser for lines that name none.

        Raises:
            UnknownInstance, OptionError: as `Routing.pooled`.
        """
        pooled = self.routing.pooled(registry)
        if pooled is not None:
            return pooled
        return registry.default_instance() if self.instance_id is None else self.instance_id


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """What a replay did.

    Attributes:
        path: the facts file.
        lines: lines read, blank ones included.
        requests: requests among them.
        ignored: write events and repeats among them.
        facts: rows written.
        first_ns: time of the first request.
    """

    path: Path
    lines: int
    requests: int
    ignored: int
    facts: int
    first_ns: int


def replay(
    windows: Iterable[Window],
    read: Read,
    registry: Registry,
    out: Path,
    *,
    source: str = "trace",
    options: ReplayOptions | None = None,
    progress: Callable[[int], None] = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> ReplaySummary:
    """Replay a trace into `out/litehit_facts.csv`, which appears whole or not at all.

    The workers read the next windows while one is processed, instance by instance, each in its own order, and the facts
    of the one before are written. Memory: a window for each worker and a few more, and the caches.

    Args:
        windows: of records, by whose numbers errors name them; blank ones are left out.
        read: reads a window.
        registry: the instances.
        out: folder of the facts file; made where it is absent.
        source: name of the trace, for errors.
        options: see `ReplayOptions`.
        progress: told the number of records done.
        stop: ends the waiting for windows, also in another thread; called where no more are wanted.

    Raises:
        TraceError: a record is malformed, its instance unknown, its length or block size wrong, its time before an
            earlier one's of its instance, its blocks too many for the engine; or the trace holds no request. The first
            such record is named.
        UnknownInstance, OptionError: as `Routing.pooled`.
    """
    options = options or ReplayOptions()
    run = _Run(Lanes(registry, options.routing, source), source, RecentByInstance(options.repeats_window))
    out.mkdir(parents=True, exist_ok=True)
    path = out / FACTS_FILE_NAME
    with (
        atomic_file(path) as sink,
        ThreadPoolExecutor(1, "litehit-replay-writer") as writer,
        ThreadPoolExecutor(options.workers, "litehit-replay") as pool,
        closing(read_ahead(windows, read, pool, options.workers, stop)) as coming,
    ):
        write_header(sink)
        written: Future[None] | None = None
        for one in coming:
            facts = run.process(one, pool)
            if written is not None:
                written.result()
            written = None if facts is None else writer.submit(write_rows, sink, facts)
            progress(run.lines)
        if written is not None:
            written.result()
        if run.first_ns is None:
            raise TraceError(source, None, f"none of its {run.lines} lines is a request; is it of another format?")
    return ReplaySummary(path, run.lines, run.requests, run.ignored, run.facts, run.first_ns)


@dataclass(slots=True)
class _Run:
    """The lanes and the counts of a replay under way."""

    lanes: Lanes
    source: str
    recent: RecentByInstance
    lines: int = 0
    requests: int = 0
    ignored: int = 0
    facts: int = 0
    first_ns: int | None = None

    def process(self, window: ReadWindow, pool: Executor) -> FactBatch | None:
        """The facts of a window's requests; None where it has none."""
        requests = self._without_repeats(window.requests) if self.recent.window else window.requests
        tasks = self.lanes.admit(requests)
        if window.fault is not None:
            number, error = window.fault
            raise TraceError(self.source, number, str(error))
        self.lines += window.records
        self.requests += len(requests)
        self.ignored += window.ignored + len(window.requests) - len(requests)
        if not tasks:
            return None
        if self.first_ns is None:
            self.first_ns = int(requests.columns.timestamps_ns[0])
        facts = self.lanes.process(tasks, pool)
        self.facts += len(facts)
        return facts

    def _without_repeats(self, requests: WindowRequests) -> WindowRequests:
        first = [
            not self.recent.is_repeat(self.lanes.target_of(request), request.trace_id)
            for _, request in requests.requests()
        ]
        return requests if all(first) else requests.select(np.flatnonzero(first))
