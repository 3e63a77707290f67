"""What the tests of the API share: facts, an index over them, and a client that needs no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api.app import create_app
from service.api.index import FactIndex


class Client:
    """Calls an app in its own event loop; an error inside the app is answered, as a server would."""

    def __init__(self, app: FastAPI) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://api"
        )

    def get(self, path: str, params: Sequence[tuple[str, Any]] = (), **options: Any) -> httpx.Response:
        """GET with query parameters in the order given."""
        return self.request("GET", path, params=httpx.QueryParams(list(params)) if params else None, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Any call."""
        return self._runner.run(self._client.request(method, path, **options))

    def close(self) -> None:
        """End the event loop."""
        self._runner.run(self._client.aclose())
        self._runner.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Makes clients of the app over an index; further arguments are `create_app`'s."""
    clients: list[Client] = []

    def make(index: FactIndex, **options: Any) -> Client:
        app = create_app(index, **{"registry": CollectorRegistry(), **options})
        clients.append(Client(app))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
