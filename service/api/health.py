"""`GET /healthz`, `/readyz` and `/metrics`: for probes and scrapers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from schemas.answers import Health, Readiness
from service.api.openapi import example_response
from service.api.readiness import StatusProvider


def health_router(
    version: str,
    status: Sequence[StatusProvider],
    registry: CollectorRegistry,
    refresh: Callable[[], None] | None = None,
) -> APIRouter:
    """The calls; they run in the event loop, or in a thread of their own, and answer while every worker is busy.

    Args:
        version: of the service.
        status: one provider for each role of this process.
        registry: what `/metrics` shows.
        refresh: computes, in bounded time, what metrics are to show; None where there is nothing to.
    """
    router = APIRouter(tags=["operation"])
    own_thread = CapacityLimiter(1)

    @router.get("/healthz", summary="Liveness", responses=example_response(Health))
    async def healthz() -> Health:
        """The process lives and serves HTTP."""
        return Health(status="ok", version=version)

    @router.get(
        "/readyz",
        summary="Readiness",
        response_model=Readiness,
        responses={
            int(HTTPStatus.SERVICE_UNAVAILABLE): {"model": Readiness, "description": "Not ready"},
            **example_response(Readiness),
        },
    )
    async def readyz() -> Response:
        """Whether answers can be relied on now; 503 with what is waited for where they can't."""
        waiting = [one for provider in status for one in provider()]
        answer = Readiness(ready=not waiting, waiting=waiting)
        code = HTTPStatus.SERVICE_UNAVAILABLE if waiting else HTTPStatus.OK
        return Response(answer.model_dump_json(), code, media_type="application/json")

    @router.get("/metrics", summary="Prometheus metrics", response_class=Response)
    async def metrics(request: Request) -> Response:
        """Metrics in the text format that the scraper accepts."""
        if refresh is not None:
            await to_thread.run_sync(refresh, limiter=own_thread)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type})

    return router
