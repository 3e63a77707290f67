"""Counts and times every call by its route."""

from __future__ import annotations

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.metrics import ApiMetrics


class MeasureCalls:
    """ASGI middleware. The label is the route's path: what clients send must not become new time series."""

    def __init__(self, app: ASGIApp, metrics: ApiMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on and measure it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500  # what a call without an answer becomes
        started = perf_counter()

        async def observe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observe)
        finally:
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.answered(route, status, perf_counter() - started)
