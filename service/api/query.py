"""`GET /query`: exact hits at any capacity."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from schemas.answers import InstanceSummary, QueryAnswer, Summary
from service.api.answering import About, Facts
from service.api.grouping import by_instance
from service.api.index import Selection
from service.api.openapi import ANSWER_PROBLEMS
from service.api.parameters import QueryParameters, refuse_repeats
from service.api.summary import Question, Tally


def query_router(facts: Facts) -> APIRouter:
    """The call."""
    router = APIRouter(tags=["hit rates"])

    @router.get(
        "/query",
        summary="Exact hits at any capacity",
        response_model=QueryAnswer,
        responses=ANSWER_PROBLEMS,
        dependencies=[Depends(refuse_repeats)],
    )
    def query(request: Request, parameters: Annotated[QueryParameters, Query()]) -> Response:
        """Hits of every request in the window at each capacity: for each instance, in total, and at infinite capacity.

        Every number is exact at every capacity, not only at configured ones. `as_of` says which facts were summed.
        """
        return facts.answer(request, parameters, lambda selection, about: _answer(parameters, selection, about))

    return router


def _answer(parameters: QueryParameters, selection: Selection, about: About) -> bytes:
    question = Question(parameters.capacity_gb, parameters.block_bytes)
    tallies = {
        instance_id: Tally.of(question, groups)
        for instance_id, groups in by_instance(selection, parameters.instance_id).items()
    }
    answer = QueryAnswer(
        total=Summary(**Tally.sum(question, tallies.values()).summary()),
        instances=[InstanceSummary(instance_id=instance_id, **one.summary()) for instance_id, one in tallies.items()],
        window=about.window,
        as_of=about.as_of,
    )
    return answer.model_dump_json().encode()
