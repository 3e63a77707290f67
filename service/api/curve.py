"""`GET /curve`: the whole hit-rate curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from numpy.typing import NDArray
from pydantic_core import to_json

from litehit.projector import HitCurveProjector
from schemas.answers import CurveAnswer
from service.api.answering import About, Facts
from service.api.curve_points import CurvePoints, chosen_points, count_breakpoints, every_breakpoint
from service.api.facts_route import FactsRoute
from service.api.grouping import by_instance
from service.api.hit_function import HitFunction, Integers, scaled
from service.api.openapi import answer_responses
from service.api.parameters import CurveParameters
from service.api.problems import invalid_parameters, parameter_problem
from service.api.selection import Selection

MAX_BREAKPOINTS = 2_000_000
"""Of one answer: what it may take of memory and of the reader's."""

_CHUNK = 8192  # numbers written at once


def curve_router(facts: Facts) -> APIRouter:
    """The call."""
    router = APIRouter(tags=["hit rates"], route_class=FactsRoute)

    @router.get(
        "/curve",
        summary="The whole hit-rate curve",
        response_model=CurveAnswer,
        responses=answer_responses(CurveAnswer),
    )
    def curve(request: Request, parameters: Annotated[CurveParameters, Query()]) -> Response:
        """Hits as a function of the capacity: for each instance and in total, exact at every point.

        With `points`, at most so many, chosen at about equal rises of the hits, so that they serve a linear and a
        logarithmic axis; `largest_error` bounds what interpolation between them may be off by. Without, every
        breakpoint: facts of one charge are linear between them, to the block.
        """
        return facts.answer(request, parameters, lambda selection, about: _answer(parameters, selection, about))

    return router


def _answer(parameters: CurveParameters, selection: Selection, about: About) -> bytes | Iterator[bytes]:
    asked, charge, count = parameters.instance_id, parameters.block_bytes, parameters.points
    if count is not None:
        return b"".join(
            curve_document(selection, asked, about, lambda function: chosen_points(function, count), charge)
        )
    # Each comes up in its instance's curve, and but for variants in the total's.
    breakpoints = 2 * count_breakpoints(HitFunction(selection.groups, charge))
    if breakpoints > MAX_BREAKPOINTS:
        reason = (
            f"is missing, and the answer would have {breakpoints:,} points, {MAX_BREAKPOINTS:,} at most are given; "
            f"send points=1000, or ask for fewer instances"
        )
        raise invalid_parameters([parameter_problem("points", None, reason)])
    return curve_document(selection, asked, about, every_breakpoint, charge)


def curve_document(
    selection: Selection,
    instance_ids: Sequence[str],
    about: About,
    points: Callable[[HitFunction], CurvePoints],
    block_bytes: int | None,
) -> Iterator[bytes]:
    """A `CurveAnswer` in parts; what is in memory at once is the points of one curve, and never the text.

    Args:
        selection: the facts.
        instance_ids: those asked for, which come up in any case; none: all, of which variants are no part of the total.
        about: what the answer says of itself.
        points: chooses those of a curve.
        block_bytes: bytes charged to every block; None = as recorded.
    """
    counted, variants = selection.split(instance_ids)
    total = HitFunction(counted.groups, block_bytes)
    yield b'{"total":'
    yield from _curve(total, points(total))
    for name, listed in ((b"instances", by_instance(counted, instance_ids)), (b"variants", by_instance(variants, ()))):
        yield b',"' + name + b'":['
        for place, (instance_id, groups) in enumerate(listed.items()):
            function = HitFunction(groups, block_bytes)
            yield b"," if place else b""
            yield from _curve(function, points(function), instance_id=instance_id)
        yield b"]"
    yield b"," + about.json[1:]


def _curve(function: HitFunction, points: CurvePoints, **more: Any) -> Iterator[bytes]:
    """A `Curve` of `schemas.answers`. Its numbers are ours, so they are written as they are and not validated again."""
    charge, unit, rate = function.block_bytes, function.unit_bytes, function.rate
    head = {
        **more,
        "requests": function.requests,
        "total_input_tokens": function.input_tokens,
        "block_bytes": charge,
        "block_size_tokens": function.block_size_tokens,
        "unit_bytes": unit,
        "ceiling": {
            "hit_blocks": function.ceiling_blocks,
            "hit_tokens": function.ceiling_tokens,
            "hit_rate": function.ceiling_rate,
        },
        "largest_error": {
            "hit_blocks": points.errors.blocks,
            "hit_tokens": points.errors.tokens,
            "hit_rate": rate(points.errors.tokens),
            "rise_hit_rate": rate(points.errors.rise_tokens),
        },
    }
    capacities = scaled(points.units, unit)
    columns: list[tuple[str, Integers, Callable[[Integers], NDArray[Any]]]] = [
        ("capacity_bytes", capacities, _same),
        ("capacity_gb", capacities, HitCurveProjector.gb_of_many_bytes),
        ("hit_blocks", points.hits.blocks, _same),
        ("hit_tokens", points.hits.tokens, _same),
        ("hit_rates", points.hits.tokens, function.rates),
    ]
    if charge is None:
        head["capacity_blocks"] = None
    else:
        columns.insert(0, ("capacity_blocks", points.units, _same))
    if len(points.units) <= _CHUNK:
        yield to_json(head | {name: shown(numbers).tolist() for name, numbers, shown in columns})
        return
    yield to_json(head)[:-1]
    for column in columns:
        yield from _column(*column)
    yield b"}"


def _same(numbers: Integers) -> Integers:
    return numbers


def _column(name: str, numbers: Integers, shown: Callable[[Integers], NDArray[Any]]) -> Iterator[bytes]:
    yield b',"' + name.encode() + b'":['
    for start in range(0, len(numbers), _CHUNK):
        listed = to_json(shown(numbers[start : start + _CHUNK]).tolist())[1:-1]
        yield b"," + listed if start else listed
    yield b"]"
