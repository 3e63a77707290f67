"""`GET /query`: exact hits at any capacity."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from schemas.answers import QueryAnswer
from service.api.answering import About, Facts
from service.api.facts_route import FactsRoute
from service.api.openapi import answer_responses
from service.api.parameters import QueryParameters
from service.api.selection import Selection
from service.api.summary import Question, Summaries


def query_router(facts: Facts) -> APIRouter:
    """The call."""
    router = APIRouter(tags=["hit rates"], route_class=FactsRoute)

    @router.get(
        "/query",
        summary="Exact hits at any capacity",
        response_model=QueryAnswer,
        responses=answer_responses(QueryAnswer),
    )
    async def query(request: Request, parameters: Annotated[QueryParameters, Query()]) -> Response:
        """Hits of every request in the window at each capacity: for each instance, in total, and at infinite capacity.

        Every number is exact at every capacity, not only at configured ones. `as_of` says which facts were summed.
        """

        def answer(selection: Selection | None = None) -> Response:
            return facts.answer(
                request,
                parameters,
                lambda selected, about: _answer(parameters, selected, about),
                selection=selection,
            )

        # The event loop waits for nothing but what is done sooner than a worker thread is reached.
        if (selection := facts.at_hand(request, parameters, len(parameters.capacity_gb))) is not None:
            return answer(selection)
        return await run_in_threadpool(answer)

    return router


def _answer(parameters: QueryParameters, selection: Selection, about: About) -> bytes:
    """A `QueryAnswer`. Its numbers are ours, so they are written as they are and not validated again."""
    question = Question(parameters.capacity_gb, parameters.block_bytes)
    counted, variants = selection.split(parameters.instance_id)
    summaries = Summaries.of(question, counted, parameters.instance_id)
    aside = Summaries.of(question, variants).instances if variants.keys else ""
    head = f'{{"total":{summaries.total},"instances":[{summaries.instances}],"variants":[{aside}],'
    return head.encode() + about.json[1:]
