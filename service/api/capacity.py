"""`GET /capacity`: the smallest capacity that reaches a hit rate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from litehit.projector import HitCurveProjector
from schemas.answers import Capacities, CapacityAnswer, Ceiling, InstanceCapacities, SmallestCapacity
from service.api.answering import About, Facts
from service.api.facts_route import FactsRoute
from service.api.grouping import by_instance
from service.api.hit_function import HitFunction
from service.api.openapi import answer_responses
from service.api.parameters import CapacityParameters
from service.api.problems import invalid_parameters, parameter_problem
from service.api.selection import Selection


def capacity_router(facts: Facts) -> APIRouter:
    """The call."""
    router = APIRouter(tags=["hit rates"], route_class=FactsRoute)

    @router.get(
        "/capacity",
        summary="The smallest capacity for a hit rate",
        response_model=CapacityAnswer,
        responses=answer_responses(CapacityAnswer),
    )
    def capacity(request: Request, parameters: Annotated[CapacityParameters, Query()]) -> Response:
        """The smallest capacity that reaches each hit rate, or each share of the ceiling; exact to the byte.

        Send `hit_rate`, `of_ceiling` or both. Where the ceiling is lower than the hit rate, or no
        request is counted, `reachable` is false.
        """
        if not parameters.hit_rate and not parameters.of_ceiling:
            reason = "is missing, and so is of_ceiling; send one of them, for example of_ceiling=.95"
            raise invalid_parameters([parameter_problem("hit_rate", None, reason)])
        return facts.answer(request, parameters, lambda selection, about: _answer(parameters, selection, about))

    return router


def _answer(parameters: CapacityParameters, selection: Selection, about: About) -> bytes:
    counted, variants = selection.split(parameters.instance_id)
    total = HitFunction(counted.groups, parameters.block_bytes)

    def listed(part: Selection, asked: Sequence[str]) -> list[InstanceCapacities]:
        return [
            InstanceCapacities(
                instance_id=instance_id, **_capacities(parameters, HitFunction(groups, parameters.block_bytes))
            )
            for instance_id, groups in by_instance(part, asked).items()
        ]

    answer = CapacityAnswer(
        total=Capacities(**_capacities(parameters, total)),
        instances=listed(counted, parameters.instance_id),
        variants=listed(variants, ()),
        window=about.window,
        as_of=about.as_of,
    )
    return answer.model_dump_json().encode()


def _capacities(parameters: CapacityParameters, function: HitFunction) -> dict[str, Any]:
    """The fields of `schemas.answers.Capacities`."""
    wanted = [
        *({"hit_rate_wanted": float(rate), "of_ceiling_wanted": None} for rate in parameters.hit_rate),
        *({"hit_rate_wanted": None, "of_ceiling_wanted": float(share)} for share in parameters.of_ceiling),
    ]
    tokens = [
        *(function.tokens_for_rate(Fraction(rate)) for rate in parameters.hit_rate),
        *(function.tokens_for_share(Fraction(share)) for share in parameters.of_ceiling),
    ]
    # Of no request every share is reached with nothing, which says nothing of what to buy.
    found = function.smallest(tokens) if function.requests else [None] * len(tokens)
    hits = function.hits([0 if one is None else one for one in found])
    return {
        "requests": function.requests,
        "total_input_tokens": function.input_tokens,
        "block_bytes": function.block_bytes,
        "ceiling": ceiling_of(function),
        "capacities": [
            SmallestCapacity(**asked, **_smallest(function, capacity, blocks, hit_tokens))
            for asked, capacity, blocks, hit_tokens in zip(
                wanted, found, hits.blocks.tolist(), hits.tokens.tolist(), strict=True
            )
        ],
    }


def _smallest(function: HitFunction, capacity_bytes: int | None, hit_blocks: int, hit_tokens: int) -> dict[str, Any]:
    if capacity_bytes is None:
        return {"reachable": False}
    charge = function.block_bytes
    return {
        "reachable": True,
        "capacity_blocks": charge and HitCurveProjector.capacity_blocks(capacity_bytes, charge),
        "capacity_bytes": capacity_bytes,
        "capacity_gb": HitCurveProjector.gb_of_bytes(capacity_bytes),
        "hit_blocks": hit_blocks,
        "hit_tokens": hit_tokens,
        "hit_rate": function.rate(hit_tokens),
        "of_ceiling": function.share(hit_tokens),
    }


def ceiling_of(function: HitFunction) -> Ceiling:
    """The ceiling of an answer."""
    return Ceiling(
        hit_blocks=function.ceiling_blocks, hit_tokens=function.ceiling_tokens, hit_rate=function.ceiling_rate
    )
