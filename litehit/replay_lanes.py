"""The lanes of an offline replay: requests in, facts in input order out."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from litehit.curves import Int64Array
from litehit.errors import TimeWentBack, TooManyBlocks, TraceError
from litehit.facts import FactBatch
from litehit.fan_out import EngineGroup, FanOut
from litehit.instance import InstanceEngine
from litehit.prepared import Prepared
from litehit.registry import InstanceConfig, Registry
from litehit.request import Request, RequestBatch
from litehit.targets import Routing


@dataclass(frozen=True, slots=True, order=True)
class _Refused:
    """The line that an engine can't process, and why."""

    line: int
    reason: str


@dataclass(slots=True)
class _Waiting:
    """What waits for the engines that take a request alike, with its rows and lines.

    Attributes:
        group: the engines.
        rows: of each request, the row of the first fact that it becomes.
    """

    group: EngineGroup
    rows: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def tasks(self) -> list[_Task]:
        """What each engine has to do; nothing waits any more."""
        rows, prepared = np.array(self.rows, np.int64), Prepared(RequestBatch.from_requests(self.requests))
        tasks = [
            _Task(engine, prepared, rows + place, self.lines)
            for engine, place in zip(self.group.engines, self.group.places, strict=True)
        ]
        self.rows, self.lines, self.requests = [], [], []
        return tasks


@dataclass(frozen=True, slots=True)
class _Task:
    """Requests for one engine: the row of each one's fact, and its line."""

    engine: InstanceEngine
    prepared: Prepared
    rows: Int64Array
    lines: list[int]

    def process(self) -> FactBatch | _Refused:
        try:
            return self.engine.process_prepared(self.prepared)
        except TooManyBlocks as error:
            return _Refused(self.lines[error.request], str(error))


class _Lane:
    """The engines that the same requests go to, and the time of the last one."""

    def __init__(self, configs: Iterable[InstanceConfig]) -> None:
        self._fan_out = FanOut(map(InstanceEngine, configs))
        self._latest_ns: int | None = None
        self.waiting = [_Waiting(group) for group in self._fan_out.groups]

    def append(self, row: int, line: int, request: Request) -> int:
        """Let a request wait; its facts begin at a row, and the next one's at the row that is returned."""
        admitted = self._fan_out.admit(request)
        if self._latest_ns is not None and request.timestamp_ns < self._latest_ns:
            config = self._fan_out.groups[0].engines[0].config
            raise TimeWentBack(config.instance_id, request.timestamp_ns, self._latest_ns)
        self._latest_ns = request.timestamp_ns
        for waiting, one in zip(self.waiting, admitted, strict=True):
            waiting.rows.append(row)
            waiting.lines.append(line)
            waiting.requests.append(one)
        return row + self._fan_out.size


class Lanes:
    """The engines of a trace, made when the first request for them comes.

    Args:
        registry: the instances.
        routing: whether requests go to other instances than the one they name.
        source: name of the trace, for errors.

    Raises:
        UnknownInstance, OptionError: as `Routing.pooled`.
    """

    def __init__(self, registry: Registry, routing: Routing, source: str) -> None:
        self._registry = registry
        self._routing = routing
        self._pooled = routing.pooled(registry)
        self._source = source
        self._lanes: dict[str, _Lane] = {}
        self._next_row = 0

    def target_of(self, request: Request) -> str:
        """The instance that a request counts for: the one it names, but where all are pooled."""
        return request.instance_id if self._pooled is None else self._pooled

    def append(self, line: int, request: Request) -> None:
        """Check the request of a line and let it wait for `process`.

        Raises:
            InvalidRequest: its length or its block size is not as registered.
            UnknownInstance: its instance is not registered.
            TimeWentBack: an earlier request of the instance has a later time.
        """
        lane = self._lane(self.target_of(request))
        self._next_row = lane.append(self._next_row, line, request)

    def process(self, pool: Executor) -> FactBatch | None:
        """The facts of all that waits, in the order of `append`; None where nothing waits.

        Raises:
            TraceError: an instance exceeds the engine's limit; of the lowest such line.
        """
        waiting = [one for lane in self._lanes.values() for one in lane.waiting if one.rows]
        tasks = [task for one in waiting for task in one.tasks()]
        self._next_row = 0
        if not tasks:
            return None
        results = list(pool.map(_Task.process, tasks))
        refused = [each for each in results if isinstance(each, _Refused)]
        if refused:
            first = min(refused)
            raise TraceError(self._source, first.line, first.reason)
        facts = FactBatch.concatenate([each for each in results if isinstance(each, FactBatch)])
        rows = np.concatenate([task.rows for task in tasks])
        return facts if len(tasks) == 1 else facts.select(np.argsort(rows))

    def _lane(self, instance_id: str) -> _Lane:
        lane = self._lanes.get(instance_id)
        if lane is None:
            lane = self._lanes[instance_id] = _Lane(self._routing.targets(self._registry, instance_id))
        return lane
