"""The lanes of an offline replay: requests in, facts in input order out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from litehit.errors import TimeWentBack
from litehit.facts import FactBatch
from litehit.instance import InstanceEngine
from litehit.registry import Registry
from litehit.request import Request, RequestBatch


@dataclass(slots=True)
class _Lane:
    """One instance: its engine, the time of its last request, and what waits for the engine, with row numbers."""

    engine: InstanceEngine
    latest_ns: int | None = None
    rows: list[int] = field(default_factory=list)
    waiting: list[Request] = field(default_factory=list)

    def append(self, row: int, request: Request) -> None:
        config = self.engine.config
        request.check_trace_block(config.trace_block_size_tokens)
        self.engine.check(len(request.block_keys), request.input_token_len)
        if self.latest_ns is not None and request.timestamp_ns < self.latest_ns:
            raise TimeWentBack(config.instance_id, request.timestamp_ns, self.latest_ns)
        self.latest_ns = request.timestamp_ns
        self.rows.append(row)
        self.waiting.append(request)

    def process(self) -> FactBatch:
        requests, self.waiting = self.waiting, []
        return self.engine.process(RequestBatch.from_requests(requests))


class Lanes:
    """An engine for each instance, made when its first request comes.

    Args:
        registry: the instances.
        targets: instances that every request goes to, in the order of their rows; None: the one it names.
    """

    def __init__(self, registry: Registry, targets: Sequence[str] | None) -> None:
        self._registry = registry
        self._targets = targets
        self._lanes: dict[str, _Lane] = {}
        self._next_row = 0

    def append(self, request: Request) -> None:
        """Check a request and let it wait for `process`.

        Raises:
            InvalidRequest: its length or its block size is not as registered.
            UnknownInstance: its instance is not registered.
            TimeWentBack: an earlier request of the instance has a later time.
        """
        for instance_id in self._targets or (request.instance_id,):
            if instance_id != request.instance_id:
                request = replace(request, instance_id=instance_id)
            self._lane(instance_id).append(self._next_row, request)
            self._next_row += 1

    def process(self, pool: Executor) -> FactBatch | None:
        """The facts of all that waits, in the order of `append`; None where nothing waits."""
        busy = [lane for lane in self._lanes.values() if lane.waiting]
        self._next_row = 0
        if not busy:
            return None
        facts = FactBatch.concatenate(list(pool.map(_Lane.process, busy)))
        rows = np.concatenate([np.array(lane.rows, np.int64) for lane in busy])
        for lane in busy:
            lane.rows.clear()
        return facts if len(busy) == 1 else facts.select(np.argsort(rows))

    def _lane(self, instance_id: str) -> _Lane:
        lane = self._lanes.get(instance_id)
        if lane is None:
            lane = self._lanes[instance_id] = _Lane(InstanceEngine(self._registry.resolve(instance_id)))
        return lane
