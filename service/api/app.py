"""The HTTP application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi.telemetry import TelemetryConfig
from fastapi_offline import FastAPIOffline
from prometheus_client import CollectorRegistry

from service.api.answering import Facts
from service.api.as_of import Lag
from service.api.capacity import capacity_router
from service.api.curve import curve_router
from service.api.fact_log import FactLog
from service.api.head_calls import HeadCalls
from service.api.health import health_router
from service.api.index import FactIndex
from service.api.instances import instances_router
from service.api.lines import lines_router
from service.api.measure import MeasureCalls
from service.api.openapi import install_openapi
from service.api.page.router import page_router
from service.api.problems import install_problem_handlers
from service.api.query import query_router
from service.api.readiness import StatusProvider, api_waiting
from service.api.refusals import install_refusals
from service.api.spread import InstanceSpreads
from service.archive.segment import ChainKey
from service.lanes.status import LanesStatus
from service.metrics import ApiMetrics

_DESCRIPTION = """Exact KV-cache prefix hit rates at any capacity, over any window and any set of instances.

A hit rate is always a sum over a sum: hit tokens over input tokens. Every error is a problem document (RFC 9457) that
names the parameter, its value and what to send instead."""


_DOCS_FILES = "/docs/files"
"""Where the script and style of `/docs` are: files of an installed package, no other host's."""

_NO_TELEMETRY = TelemetryConfig(tracing=False, metrics=False, logs=False)
"""FastAPI's own is left out: this service has Prometheus metrics, and at each call it looks for who wants any."""


def _no_lag() -> Mapping[ChainKey, int]:
    return {}


def create_app(
    index: FactIndex | None,
    *,
    registry: CollectorRegistry,
    status: Sequence[StatusProvider] = (),
    lag: Lag = _no_lag,
    lanes: Callable[[], LanesStatus] | None = None,
    log: FactLog | None = None,
) -> FastAPI:
    """The application of a process: all calls over an index, or, without one, only those for probes and scrapers.

    Args:
        index: sums of the facts, whose own status is part of the readiness; None in a process without the role `api`.
        registry: gets the metrics of the API, and is what `/metrics` shows.
        status: what the other roles of this process wait for.
        lag: how many facts each partition is behind its topic; by default no partition has a known lag.
        lanes: the lanes of this process; None where there are none.
        log: where facts themselves are read; without one the calls that give them are not there.
    """
    release = version("litehit")
    app = FastAPIOffline(
        title="LiteHit",
        version=release,
        description=_DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        redoc_url=None,
        static_url=_DOCS_FILES,
        telemetry=_NO_TELEMETRY,
    )
    install_problem_handlers(app)
    install_refusals(app)
    install_openapi(app)
    refresh: Callable[[], None] | None = None
    if index is not None:
        spreads = InstanceSpreads(index)
        refresh = spreads.refresh
        app.add_middleware(MeasureCalls, metrics=ApiMetrics(registry, index.size, spreads.capacities))
        facts = Facts(index, lag)
        for router in (query_router, curve_router, capacity_router):
            app.include_router(router(facts))
        app.include_router(instances_router(facts, lanes))
        if log is not None:
            app.include_router(lines_router(index, log))
        app.include_router(page_router())
        status = (api_waiting(index.waiting), *status)
    else:

        @app.get("/", include_in_schema=False)
        async def home() -> RedirectResponse:
            return RedirectResponse("/docs")

    app.add_middleware(HeadCalls)
    app.include_router(health_router(release, status, registry, refresh))
    return app
