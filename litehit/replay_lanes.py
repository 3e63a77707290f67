"""The lanes of an offline replay: requests in, facts in input order out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from litehit.errors import TimeWentBack, TooManyBlocks, TraceError
from litehit.facts import FactBatch
from litehit.instance import InstanceEngine
from litehit.registry import Registry
from litehit.request import Request, RequestBatch


@dataclass(frozen=True, slots=True, order=True)
class _Refused:
    """The line that an engine can't process, and why."""

    line: int
    reason: str


@dataclass(slots=True)
class _Lane:
    """One instance: its engine, the time of its last request, and what waits for the engine, with rows and lines."""

    engine: InstanceEngine
    latest_ns: int | None = None
    rows: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)

    def append(self, row: int, line: int, request: Request) -> None:
        config = self.engine.config
        request = request.at_block(config.trace_block_size_tokens)
        self.engine.check(len(request.block_keys), request.input_token_len)
        if self.latest_ns is not None and request.timestamp_ns < self.latest_ns:
            raise TimeWentBack(config.instance_id, request.timestamp_ns, self.latest_ns)
        self.latest_ns = request.timestamp_ns
        self.rows.append(row)
        self.lines.append(line)
        self.waiting.append(request)

    def process(self) -> FactBatch | _Refused:
        try:
            return self.engine.process(RequestBatch.from_requests(self.waiting))
        except TooManyBlocks as error:
            return _Refused(self.lines[error.request], str(error))
        finally:
            self.lines.clear()
            self.waiting.clear()


class Lanes:
    """An engine for each instance, made when its first request comes.

    Args:
        registry: the instances.
        targets: instances that every request goes to, in the order of their rows; None: the one it names.
        source: name of the trace, for errors.
    """

    def __init__(self, registry: Registry, targets: Sequence[str] | None, source: str) -> None:
        self._registry = registry
        self._targets = targets
        self._source = source
        self._lanes: dict[str, _Lane] = {}
        self._next_row = 0

    def append(self, line: int, request: Request) -> None:
        """Check the request of a line and let it wait for `process`.

        Raises:
            InvalidRequest: its length or its block size is not as registered.
            UnknownInstance: its instance is not registered.
            TimeWentBack: an earlier request of the instance has a later time.
        """
        for instance_id in self._targets or (request.instance_id,):
            if instance_id != request.instance_id:
                request = request._replace(instance_id=instance_id)
            self._lane(instance_id).append(self._next_row, line, request)
            self._next_row += 1

    def process(self, pool: Executor) -> FactBatch | None:
        """The facts of all that waits, in the order of `append`; None where nothing waits.

        Raises:
            TraceError: an instance exceeds the engine's limit; of the lowest such line.
        """
        busy = [lane for lane in self._lanes.values() if lane.waiting]
        self._next_row = 0
        if not busy:
            return None
        results = list(pool.map(_Lane.process, busy))
        refused = [each for each in results if isinstance(each, _Refused)]
        if refused:
            first = min(refused)
            raise TraceError(self._source, first.line, first.reason)
        facts = FactBatch.concatenate([each for each in results if isinstance(each, FactBatch)])
        rows = np.concatenate([np.array(lane.rows, np.int64) for lane in busy])
        for lane in busy:
            lane.rows.clear()
        return facts if len(busy) == 1 else facts.select(np.argsort(rows))

    def _lane(self, instance_id: str) -> _Lane:
        lane = self._lanes.get(instance_id)
        if lane is None:
            lane = self._lanes[instance_id] = _Lane(InstanceEngine(self._registry.resolve(instance_id)))
        return lane
