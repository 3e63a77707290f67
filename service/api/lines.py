"""Calls that give facts or requests one by one: `GET /facts` and `GET /query/requests`, as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from litehit.query import query_lines
from litehit.totals import SlotTotals
from service.api.answering import not_modified, send, state_tag, stream, validators
from service.api.as_of_header import DESCRIPTIONS, as_of_headers
from service.api.cursor import encode_cursor
from service.api.fact_log import FactLog, PinnedChain
from service.api.fact_page import read_page
from service.api.facts_route import FactsRoute
from service.api.index import FactIndex
from service.api.openapi import OTHER_RESPONSES, VALIDATORS
from service.api.parameters import FactsParameters, FactsSelected, QueryParameters, refuse_other_units
from service.api.turns import Turns
from service.api.windows import TimeWindow
from service.archive.reader import FactFilter

JSON_LINES = "application/x-ndjson"
_CALLS = 8  # that read facts at the same time

_AS_OF_HEADER: dict[str, Any] = {
    **VALIDATORS,
    **DESCRIPTIONS,
}
_FACTS_HEADERS: dict[str, Any] = {
    **_AS_OF_HEADER,
    "LiteHit-Cursor": {
        "description": "what to send as `cursor` to go on, now or when more facts have come",
        "schema": {"type": "string"},
    },
    "Link": {"description": 'the next page, rel="next"; absent at the end', "schema": {"type": "string"}},
}
_FACT_LINE = (
    '{"trace_id":"r1","instance_id":"qwen3-chat","timestamp_ns":1738315800123456789,"input_token_len":13,'
    '"block_size_tokens":4,"block_bytes":1024,"hit_curve":[[1,2],[4,1]]}\n'
)
_REQUEST_LINES = (
    '{"trace_id":"r1","instance_id":"qwen3-chat","timestamp_ns":1738315800123456789,"input_token_len":13,'
    '"hit_blocks":[2,3],"hit_rates":[0.6153846153846154,0.9230769230769231]}\n'
)


def lines_router(index: FactIndex, log: FactLog) -> APIRouter:
    """The calls.

    Args:
        index: says which instances there are, and whether the store is known yet.
        log: where facts are read.
    """
    router = APIRouter(tags=["facts"], route_class=FactsRoute)
    turns = Turns(_CALLS)

    def pin(request: Request, asked: FactsSelected) -> tuple[list[PinnedChain], FactFilter]:
        window = asked.window
        refuse_other_units(request, window, index.earliest_ns)
        index.select(TimeWindow(), asked.instance_id or None)  # refuses what it does not know
        return log.pin(), FactFilter(window.from_ns, window.to_ns, asked.instance_id or None)

    @router.get(
        "/facts",
        summary="The facts themselves",
        response_class=Response,
        responses={**OTHER_RESPONSES, **_ok("A page of facts, one a line", _FACTS_HEADERS, _FACT_LINE)},
    )
    def facts(request: Request, parameters: Annotated[FactsParameters, Query()]) -> Response:
        """Facts as they stand on the facts topic, one a line, partition by partition in the order of their offsets.

        A page ends after `limit` facts, or sooner where they are large or hard to find. `LiteHit-Cursor` goes on from
        there, by offset, so it stays good whatever becomes of the files; at the end (no `Link`), it waits for facts to
        come.
        """
        chains, wanted = pin(request, parameters)
        headers = _as_of(request, chains)
        if (known := not_modified(request, headers)) is not None:
            return known
        with turns.turn():
            page = read_page(log, chains, wanted, parameters.cursor or {}, parameters.limit)
        headers["LiteHit-Cursor"] = encode_cursor(page.offsets)
        if page.has_more:
            following = request.url.include_query_params(cursor=headers["LiteHit-Cursor"]).query
            headers["Link"] = f'<?{following}>; rel="next"'
        return send(request, b"".join(page.lines), headers, JSON_LINES)

    @router.get(
        "/query/requests",
        summary="Exact hits of each request",
        response_class=Response,
        responses={**OTHER_RESPONSES, **_ok("Requests, then summaries, one a line", _AS_OF_HEADER, _REQUEST_LINES)},
    )
    def query_requests(request: Request, parameters: Annotated[QueryParameters, Query()]) -> Response:
        """The lines of `litehit query`: one a request, then a summary of each instance, then the total.

        They are sent as they are read. The last line is the total: an answer without it was cut off.
        """
        chains, wanted = pin(request, parameters)
        headers = _as_of(request, chains)
        if (known := not_modified(request, headers)) is not None:
            return known

        def lines() -> Iterator[bytes]:
            with turns.turn():
                batches = (rows.facts for pinned in chains for rows in log.read(pinned, wanted))
                total = SlotTotals(tuple(parameters.capacity_gb))
                yield from query_lines(
                    batches,
                    total,
                    block_bytes=parameters.block_bytes,
                    with_variants=bool(parameters.instance_id),
                )

        return stream(request, _started(lines()), JSON_LINES, headers)

    return router


def _ok(description: str, headers: dict[str, Any], example: str) -> dict[int | str, dict[str, Any]]:
    content = {JSON_LINES: {"schema": {"type": "string"}, "example": example}}
    return {int(HTTPStatus.OK): {"description": description, "headers": headers, "content": content}}


def _started(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts, of which the first is made now: what is refused is refused before an answer has begun."""
    return chain([next(parts)], parts)


def _as_of(request: Request, chains: Sequence[PinnedChain]) -> dict[str, str]:
    """Headers that say which facts an answer is about."""
    # Whole, and not only what the header has room for.
    known = [(one.chain, one.end_offset) for one in chains]
    state = str([(one.key, one.start_offset, end, one.missing, one.unreadable_from) for one, end in known])
    return {**validators(state_tag(request, state.encode())), **as_of_headers(chains)}
