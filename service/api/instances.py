"""`GET /instances`: what is known of each instance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from litehit.projector import HitCurveProjector
from litehit.registry import InstanceConfig
from schemas.answers import (
    ChargedRequests,
    InstanceAnswer,
    InstancesAnswer,
    LaneAnswer,
    Registration,
    ReuseDistance,
    Summary,
)
from schemas.registry import exact_seconds
from service.api.answering import About, Facts
from service.api.facts_route import FactsRoute
from service.api.grouping import by_instance
from service.api.groups import GroupKey
from service.api.hit_function import HitFunction
from service.api.openapi import answer_responses
from service.api.parameters import Selected
from service.api.selection import HitSums, Selection
from service.api.spread import SHARES, spread
from service.api.summary import Question, Summaries
from service.lanes.status import InstanceStatus, LanesStatus


def instances_router(facts: Facts, lanes: Callable[[], LanesStatus] | None) -> APIRouter:
    """The call.

    Args:
        facts: what it is answered from.
        lanes: the lanes of this process; None where there are none.
    """
    router = APIRouter(tags=["hit rates"], route_class=FactsRoute)

    @router.get(
        "/instances",
        summary="Registration, size and hit rates of each instance",
        response_model=InstancesAnswer,
        responses=answer_responses(InstancesAnswer),
    )
    def instances(request: Request, parameters: Annotated[Selected, Query()]) -> Response:
        """Each instance with its registration, the size of its LRU state, and its hits at the registered capacities.

        Registration and size are known to the lanes: where those run in another process, they are null,
        `lanes_in_this_process` is false, and the capacities are none; what the facts tell is there all the same.
        """
        held = None if lanes is None else _held(lanes(), parameters.instance_id)
        return facts.answer(
            request, parameters, lambda selection, about: _answer(parameters, held, selection, about), state=repr(held)
        )

    return router


_Held = dict[str, list[tuple[int, InstanceStatus]]]


def _held(status: LanesStatus, instance_ids: Sequence[str]) -> _Held:
    """Partition and core of each instance that the lanes hold."""
    held: _Held = defaultdict(list)
    for lane in status.lanes:
        for one in lane.instances:
            if not instance_ids or one.config.instance_id in instance_ids:
                held[one.config.instance_id].append((lane.partition, one))
    return dict(held)


def _answer(parameters: Selected, held: _Held | None, selection: Selection, about: About) -> bytes:
    groups = by_instance(selection, {*parameters.instance_id, *(held or ())})
    answer = InstancesAnswer(
        lanes_in_this_process=held is not None,
        instances=[
            _instance(
                instance_id,
                of_instance,
                selection.of_instances([instance_id]),
                (held or {}).get(instance_id),
                parameters.block_bytes,
            )
            for instance_id, of_instance in groups.items()
        ],
        window=about.window,
        as_of=about.as_of,
    )
    return answer.model_dump_json().encode()


def _instance(
    instance_id: str,
    groups: Sequence[tuple[GroupKey, HitSums]],
    selection: Selection,
    cores: Sequence[tuple[int, InstanceStatus]] | None,
    block_bytes: int | None,
) -> InstanceAnswer:
    function = HitFunction(groups, block_bytes)
    config = cores[-1][1].config if cores else None
    question = Question(config.capacity_gb if config is not None else (), block_bytes)
    return InstanceAnswer(
        instance_id=instance_id,
        registration=None if config is None else _registration(config),
        unique_blocks=None if cores is None else sum(core.unique_blocks for _, core in cores),
        memory_bytes=None if cores is None else sum(core.memory_bytes for _, core in cores),
        lanes=None
        if cores is None
        else [
            LaneAnswer(partition=partition, unique_blocks=core.unique_blocks, memory_bytes=core.memory_bytes)
            for partition, core in cores
        ],
        charges=_charges(groups),
        summary=Summary.model_validate_json(Summaries.of(question, selection).total),
        reuse_distance=_reuse_distance(function),
    )


def _registration(config: InstanceConfig) -> Registration:
    return Registration(
        group=config.group,
        block_size_tokens=config.block_size_tokens,
        trace_block_size_tokens=config.trace_block_size_tokens,
        block_bytes=config.block_bytes,
        enable_prefix_hash=config.enable_prefix_hash,
        ttl_seconds=float(exact_seconds(config.ttl_ns)),
        capacity_gb=list(config.capacity_gb),
    )


def _charges(groups: Sequence[tuple[GroupKey, HitSums]]) -> list[ChargedRequests]:
    requests: defaultdict[tuple[int, int], int] = defaultdict(int)
    for key, sums in groups:
        requests[key.block_size_tokens, key.block_bytes] += sums.requests
    return [
        ChargedRequests(block_size_tokens=size, block_bytes=charge, requests=count)
        for (size, charge), count in sorted(requests.items())
    ]


def _reuse_distance(function: HitFunction) -> ReuseDistance:
    found = spread(function, SHARES)
    charge = function.block_bytes
    blocks: Any = charge and [HitCurveProjector.capacity_blocks(capacity, charge) for capacity in found]
    return ReuseDistance(
        of_ceiling=[*map(float, SHARES)],
        capacity_blocks=blocks,
        capacity_bytes=found,
        capacity_gb=[*map(HitCurveProjector.gb_of_bytes, found)],
    )
