"""Fixtures that the tests of the API share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from service.api.app import create_app
from service.api.index import FactIndex
from tests.api_doubles import Client, Segments


@pytest.fixture
def segments() -> Segments:
    """The segments of `index`."""
    return Segments()


@pytest.fixture
def index(segments: Segments) -> FactIndex:
    """An empty index that answers."""
    made = FactIndex(segments, window_rows=1000)
    made.loaded()
    return made


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Makes clients of the app over an index; further arguments are `create_app`'s."""
    clients: list[Client] = []

    def make(over: FactIndex | None, **options: Any) -> Client:
        clients.append(Client(create_app(over, **{"registry": CollectorRegistry(), **options})))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(index: FactIndex, connect: Callable[..., Client]) -> Client:
    """A client of the app over `index`."""
    return connect(index)
