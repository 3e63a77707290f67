"""The lanes of an offline replay: requests in, facts in input order out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from litehit.curves import Int64Array
from litehit.errors import InvalidRequest, TimeWentBack, TooManyBlocks, TraceError, UnknownInstance
from litehit.facts import FactBatch
from litehit.fan_out import EngineGroup, FanOut
from litehit.instance import InstanceEngine
from litehit.prepared import Prepared
from litehit.registry import InstanceConfig, Registry
from litehit.request import Request, RequestBatch
from litehit.targets import Routing
from litehit.window_requests import WindowRequests


@dataclass(frozen=True, slots=True, order=True)
class _Refused:
    """A request that can't be processed: its place in the order, its record's number, and why."""

    place: int
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Task:
    """Requests for one engine: the row of each one's fact, and its record's number."""

    engine: InstanceEngine
    prepared: Prepared
    rows: Int64Array
    numbers: Int64Array

    def process(self) -> FactBatch | _Refused:
        try:
            return self.engine.process_prepared(self.prepared)
        except TooManyBlocks as error:
            return _Refused(int(self.rows[error.request]), int(self.numbers[error.request]), str(error))


class _Lane:
    """The engines that the same requests go to, and the time of the last one."""

    def __init__(self, configs: Iterable[InstanceConfig]) -> None:
        self._fan_out = FanOut(map(InstanceEngine, configs))
        self._latest_ns: int | None = None
        self.size = self._fan_out.size

    def admit(self, requests: WindowRequests) -> list[tuple[EngineGroup, RequestBatch]] | _Refused:
        """The requests as each group of engines takes them, or the first that none must be given."""
        times = requests.columns.timestamps_ns
        ascend = bool(np.all(times[:-1] <= times[1:])) and (self._latest_ns is None or self._latest_ns <= times[0])
        groups = self._fan_out.groups
        if ascend and all(group.takes_as_they_are(requests) for group in groups):
            self._latest_ns = int(times[-1])
            return [(group, requests.columns) for group in groups]
        return self._admit_one_by_one(requests)

    def _admit_one_by_one(self, requests: WindowRequests) -> list[tuple[EngineGroup, RequestBatch]] | _Refused:
        admitted: list[tuple[Request, ...]] = []
        for place, (number, request) in enumerate(requests.requests()):
            try:
                admitted.append(self._fan_out.admit(request))
                self._advance(request.timestamp_ns)
            except (InvalidRequest, TimeWentBack) as error:
                return _Refused(place, number, str(error))
        by_group = zip(*admitted, strict=True)
        return [
            (group, RequestBatch.from_requests(own)) for group, own in zip(self._fan_out.groups, by_group, strict=True)
        ]

    def _advance(self, time_ns: int) -> None:
        if self._latest_ns is not None and time_ns < self._latest_ns:
            config = self._fan_out.groups[0].engines[0].config
            raise TimeWentBack(config.instance_id, time_ns, self._latest_ns)
        self._latest_ns = time_ns


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

    def target_of(self, request: Request) -> str:
        """The instance that a request counts for: the one it names, but where all are pooled."""
        return request.instance_id if self._pooled is None else self._pooled

    def admit(self, requests: WindowRequests) -> list[_Task]:
        """What the engines have to do about some requests, in order; each lane takes all of its own, or none is taken.

        Raises:
            TraceError: of the first record whose length or block size is not as registered, whose instance is not
                registered, or whose time is before that of an earlier request of the instance.
        """
        shares: list[tuple[Int64Array, list[tuple[EngineGroup, RequestBatch]]]] = []
        refused: list[_Refused] = []
        facts = np.empty(len(requests), np.int64)  # that each request becomes
        for instance_id, rows in self._routed(requests):
            own = requests if len(rows) == len(requests) else requests.select(rows)
            try:
                lane = self._lane(instance_id)
            except UnknownInstance as error:
                refused.append(_Refused(int(rows[0]), int(own.numbers[0]), str(error)))
                continue
            admitted = lane.admit(own)
            if isinstance(admitted, _Refused):
                refused.append(replace(admitted, place=int(rows[admitted.place])))
                continue
            facts[rows] = lane.size
            shares.append((rows, admitted))
        if refused:
            raise self._error(refused)
        ends = np.cumsum(facts)
        tasks: list[_Task] = []
        for rows, admitted in shares:
            first_facts = ends[rows] - facts[rows]
            for group, batch in admitted:
                prepared = Prepared(batch)
                tasks.extend(
                    _Task(engine, prepared, first_facts + place, requests.numbers[rows])
                    for engine, place in zip(group.engines, group.places, strict=True)
                )
        return tasks

    def process(self, tasks: Sequence[_Task], pool: Executor) -> FactBatch:
        """The facts of one task or more, in the order of their requests.

        Raises:
            TraceError: an instance exceeds the engine's limit; of the first such record.
        """
        others = [pool.submit(task.process) for task in tasks[1:]]
        results = [tasks[0].process(), *(other.result() for other in others)]
        refused = [each for each in results if isinstance(each, _Refused)]
        if refused:
            raise self._error(refused)
        if len(results) == 1 and isinstance(results[0], FactBatch):
            return results[0]
        facts = FactBatch.concatenate([each for each in results if isinstance(each, FactBatch)])
        return facts.select(np.argsort(np.concatenate([task.rows for task in tasks])))

    def _error(self, refused: Sequence[_Refused]) -> TraceError:
        first = min(refused)
        return TraceError(self._source, first.number, first.reason)

    def _routed(self, requests: WindowRequests) -> Iterable[tuple[str, Int64Array]]:
        if self._pooled is None:
            return requests.by_instance()
        return [(self._pooled, np.arange(len(requests)))] if len(requests) else []

    def _lane(self, instance_id: str) -> _Lane:
        lane = self._lanes.get(instance_id)
        if lane is None:
            lane = self._lanes[instance_id] = _Lane(self._routing.targets(self._registry, instance_id))
        return lane
