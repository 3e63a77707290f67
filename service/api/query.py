"""`GET /query`: exact hits at any capacity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from schemas.answers import InstanceSummary, QueryAnswer, Summary
from service.api.as_of import Lag, as_of_answer, window_answer
from service.api.index import FactIndex, Selection
from service.api.openapi import problem_responses
from service.api.parameters import QueryParameters, refuse_repeats
from service.api.summary import Question, add_up, summary, tally
from service.api.sums import GroupKey, HitSums
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey


def query_router(index: FactIndex, lag: Lag) -> APIRouter:
    """The call, answered from an index.

    Args:
        index: sums of the facts.
        lag: asked at each call for how many facts each partition is behind its topic.
    """
    router = APIRouter(tags=["hit rates"])

    @router.get(
        "/query",
        summary="Exact hits at any capacity",
        response_model=QueryAnswer,
        responses=problem_responses(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.UNPROCESSABLE_ENTITY,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
        dependencies=[Depends(refuse_repeats)],
    )
    def query(parameters: Annotated[QueryParameters, Query()]) -> Response:
        """Hits of every request in the window at each capacity: for each instance, in total, and at infinite capacity.

        Every number is exact at every capacity, not only at configured ones. `as_of` says which facts were summed.
        """
        window = parameters.window
        selection = index.select(window, parameters.instance_id or None)
        question = Question(parameters.capacity_gb, parameters.block_bytes)
        answer = _answer(selection, parameters.instance_id, question, window, lag())
        # Written here, in the worker thread, and not in the event loop.
        return Response(answer.model_dump_json(), media_type="application/json")

    return router


def _answer(
    selection: Selection,
    instance_ids: Collection[str],
    question: Question,
    window: TimeWindow,
    lag: Mapping[ChainKey, int],
) -> QueryAnswer:
    by_instance: dict[str, list[tuple[GroupKey, HitSums]]] = {instance_id: [] for instance_id in instance_ids}
    for key, sums in selection.groups:
        by_instance.setdefault(key.instance_id, []).append((key, sums))
    tallies = {instance_id: tally(question, groups) for instance_id, groups in sorted(by_instance.items())}
    return QueryAnswer(
        total=Summary(**summary(add_up(question, tallies.values()))),
        instances=[InstanceSummary(instance_id=instance_id, **summary(one)) for instance_id, one in tallies.items()],
        window=window_answer(window),
        as_of=as_of_answer(selection.as_of, lag),
    )
