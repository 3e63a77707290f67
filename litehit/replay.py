"""The offline runner (SPEC section 7): a trace to `litehit_facts.csv`, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from litehit.atomic_file import atomic_file
from litehit.errors import InvalidRequest, OptionError, TimeWentBack, TraceError, UnknownInstance
from litehit.facts import FactBatch
from litehit.facts_csv import FACTS_FILE_NAME, write_header, write_rows
from litehit.registry import Registry
from litehit.repeats import MAX_REPEATS_WINDOW, RecentByInstance
from litehit.replay_lanes import Lanes
from litehit.request import Request, check_instance_option
from litehit.targets import AS_NAMED, Routing

MAX_WORKERS = 256
WINDOW_LINES_PER_WORKER = 256

Parse: TypeAlias = Callable[[bytes, int], Request | None]
"""Reads a line, given its number from 1; None: recognised and ignored. Raises InvalidRequest. Used by many threads."""

_Line: TypeAlias = tuple[int, bytes]
_Parsed: TypeAlias = Request | InvalidRequest | None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a trace is replayed.

    Attributes:
        workers: threads, 1 to `MAX_WORKERS`; any number gives the same bytes.
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
    """

    path: Path
    lines: int
    requests: int
    ignored: int
    facts: int


def replay(
    lines: Iterable[_Line],
    parse: Parse,
    registry: Registry,
    out: Path,
    *,
    source: str = "trace",
    options: ReplayOptions | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ReplaySummary:
    """Replay a trace into `out/litehit_facts.csv`, which appears whole or not at all.

    Windows of `workers * 256` lines are parsed by the workers and then processed instance by instance, each in input
    order. Memory: one window, and the caches.

    Args:
        lines: one record each, with its number, by which errors name it; blank ones are left out.
        parse: reads a line.
        registry: the instances.
        out: folder of the facts file; made where it is absent.
        source: name of the trace, for errors.
        options: see `ReplayOptions`.
        progress: told the number of lines done.

    Raises:
        TraceError: a line is malformed, its instance unknown, its length or block size wrong, its time before an
            earlier one's of its instance, its blocks too many for the engine; or the trace holds no request. The lowest
            such line is named.
        UnknownInstance, OptionError: as `Routing.pooled`.
    """
    options = options or ReplayOptions()
    recent = RecentByInstance(options.repeats_window)
    run = _Run(Lanes(registry, options.routing, source), parse, source, options.workers, recent)
    out.mkdir(parents=True, exist_ok=True)
    path = out / FACTS_FILE_NAME
    with atomic_file(path) as sink, ThreadPoolExecutor(options.workers, "litehit-replay") as pool:
        write_header(sink)
        for window in _windows(lines, source, options.workers * WINDOW_LINES_PER_WORKER):
            facts = run.process(window, pool)
            if facts is not None:
                write_rows(sink, facts)
            progress(run.lines)
        if not run.facts:
            raise TraceError(source, None, f"none of its {run.lines} lines is a request; is it of another format?")
    return ReplaySummary(path, run.lines, run.requests, run.ignored, run.facts)


def _windows(lines: Iterable[_Line], source: str, size: int) -> Iterator[list[_Line]]:
    reading = iter(lines)
    done = 0
    while True:
        try:
            window = list(islice(reading, size))
        except OSError as error:
            raise TraceError(source, None, f"cannot be read beyond line {done} ({error})") from None
        if not window:
            return
        done += len(window)
        yield window


@dataclass(slots=True)
class _Run:
    """The lanes and the counts of a replay under way."""

    lanes: Lanes
    parse: Parse
    source: str
    workers: int
    recent: RecentByInstance
    lines: int = 0
    requests: int = 0
    ignored: int = 0
    facts: int = 0

    def process(self, window: Sequence[_Line], pool: Executor) -> FactBatch | None:
        records = [line for line in window if line[1].strip()]
        stripes = [records[worker :: self.workers] for worker in range(self.workers)]
        parsed: list[_Parsed] = [None] * len(records)
        for worker, results in enumerate(pool.map(self._parse_stripe, stripes)):
            parsed[worker :: self.workers] = results
        for (number, _), result in zip(records, parsed, strict=True):
            self._admit(number, result)
        self.lines += len(window)
        facts = self.lanes.process(pool)
        self.facts += 0 if facts is None else len(facts)
        return facts

    def _parse_stripe(self, records: Sequence[_Line]) -> list[_Parsed]:
        results: list[_Parsed] = []
        for number, line in records:
            try:
                results.append(self.parse(line, number))
            except InvalidRequest as error:
                # Another stripe may hold a lower line that is at fault.
                results.append(error)
        return results

    def _admit(self, number: int, parsed: _Parsed) -> None:
        if parsed is None or (isinstance(parsed, Request) and self._is_repeat(parsed)):
            self.ignored += 1
            return
        try:
            if isinstance(parsed, InvalidRequest):
                raise parsed
            self.lanes.append(number, parsed)
        except (InvalidRequest, UnknownInstance, TimeWentBack) as error:
            raise TraceError(self.source, number, str(error)) from None
        self.requests += 1

    def _is_repeat(self, request: Request) -> bool:
        return self.recent.is_repeat(self.lanes.target_of(request), request.trace_id)
