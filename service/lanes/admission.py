"""Which engines a lane's requests go to, and why some go to none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.errors import (
    InvalidRequest,
    LengthMismatch,
    PromptTooLong,
    TraceBlockMismatch,
    UnknownInstance,
)
from litehit.fan_out import EngineGroup, FanOut, taken_as_they_are
from litehit.request import Request, RequestBatch
from litehit.window_requests import WindowRequests
from schemas.dead_letter import Reason
from service.lanes.counts import Ignored
from service.lanes.instances import LaneInstances
from service.lanes.read_records import Poison

_REASONS: tuple[tuple[type[InvalidRequest], Reason], ...] = (
    (TraceBlockMismatch, Reason.TRACE_BLOCK_MISMATCH),
    (LengthMismatch, Reason.LENGTH_MISMATCH),
    (PromptTooLong, Reason.INVALID_FIELD),
)


@dataclass(frozen=True, slots=True)
class Share:
    """Requests for engines that take them alike.

    Attributes:
        group: the engines.
        rows: int64[R], the rows of the requests' records.
        requests: R requests.
    """

    group: EngineGroup
    rows: Int64Array
    requests: RequestBatch


@dataclass(frozen=True, slots=True)
class Admitted:
    """Requests on their way to engines; each goes to all of its instance's, or to none.

    Attributes:
        shares: those that do, in order within an instance.
        refused: those that go to none, with the rows of their records.
    """

    shares: list[Share] = field(default_factory=list)
    refused: list[tuple[int, Ignored | Poison]] = field(default_factory=list)


def admit(instances: LaneInstances, requests: WindowRequests) -> Admitted:
    """Let requests go to their engines.

    Args:
        instances: of the lane.
        requests: their numbers are the rows of their records, ascending.
    """
    admitted = Admitted()
    requests = instances.routed(requests)
    requests = requests.select(np.argsort(requests.instance_of, kind="stable"))
    ends = np.cumsum(np.bincount(requests.instance_of, minlength=len(requests.instances))).tolist()
    runs: list[_Run] = []
    for instance_id, first, end in zip(requests.instances, [0, *ends], ends, strict=False):
        if first == end:
            continue
        try:
            runs.append(_Run(instance_id, instances.fan_out(instance_id), first, end))
        except UnknownInstance as error:
            unknown = Poison(Reason.UNKNOWN_INSTANCE, str(error))
            admitted.refused.extend((row, unknown) for row in requests.numbers[first:end].tolist())
    are_plain = _are_plain(requests, runs)
    for run in runs:
        if are_plain[run.first : run.end].all():
            _admit_all(instances, requests, run, admitted)
        else:
            _admit_one_by_one(instances, requests, run, admitted)
    return admitted


class _Run(NamedTuple):
    """Requests of one instance, `first` to `end` of some, and where they go."""

    instance_id: str
    fan_out: FanOut
    first: int
    end: int


def _are_plain(requests: WindowRequests, runs: Sequence[_Run]) -> NDArray[np.bool_]:
    """Which requests all their engines surely take as they are; those of no run mean nothing."""
    are_plain = np.ones(len(requests), np.bool_)
    for depth in range(max((len(run.fan_out.groups) for run in runs), default=0)):
        blocks = np.ones(len(requests), np.int64)
        for run in runs:
            groups = run.fan_out.groups
            blocks[run.first : run.end] = groups[min(depth, len(groups) - 1)].trace_block_size_tokens
        are_plain &= taken_as_they_are(requests, blocks)
    return are_plain


def _admit_all(instances: LaneInstances, requests: WindowRequests, run: _Run, admitted: Admitted) -> None:
    """All but those that were sent before."""
    own = slice(run.first, run.end)
    rows, columns = requests.numbers[own], requests.columns[own]
    repeats = instances.repeats(run.instance_id, columns.trace_ids)
    if any(repeats):
        is_repeat = np.array(repeats, np.bool_)
        admitted.refused.extend((row, Ignored.REPEAT) for row in rows[is_repeat].tolist())
        rows, columns = rows[~is_repeat], columns.select(np.flatnonzero(~is_repeat))
    if len(rows):
        admitted.shares.extend(Share(group, rows, columns) for group in run.fan_out.groups)


def _admit_one_by_one(instances: LaneInstances, requests: WindowRequests, run: _Run, admitted: Admitted) -> None:
    rows: list[int] = []
    taken: list[tuple[Request, ...]] = []
    for row, request in requests.select(np.arange(run.first, run.end)).requests():
        try:
            as_taken = run.fan_out.admit(request)
        except InvalidRequest as error:
            admitted.refused.append((row, Poison(_reason(error), str(error))))
            continue
        # Only what its engines take is remembered.
        if any(instances.repeats(run.instance_id, [request.trace_id])):
            admitted.refused.append((row, Ignored.REPEAT))
            continue
        rows.append(row)
        taken.append(as_taken)
    for group, own in zip(run.fan_out.groups, zip(*taken, strict=True), strict=False):
        admitted.shares.append(Share(group, np.array(rows, np.int64), RequestBatch.from_requests(own)))


def _reason(error: InvalidRequest) -> Reason:
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    raise error
