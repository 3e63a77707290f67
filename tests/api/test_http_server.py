"""The server on a real socket."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable

import httpx
import pytest
from prometheus_client import CollectorRegistry

from service.api.address import Address
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.server import ApiServer
from service.errors import AddressUnusable
from service.supervisor import Supervisor


@pytest.fixture
def make_server(index: FactIndex) -> Callable[..., ApiServer]:
    return lambda host, port: ApiServer(create_app(index, registry=CollectorRegistry()), Address(host, port))


def test_it_serves_on_the_port_it_chose_until_it_is_stopped(make_server: Callable[..., ApiServer]) -> None:
    server = make_server("127.0.0.1", 0)
    supervisor = Supervisor()
    supervisor.start("api", server.serve)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/query", params={"capacity_gb": 8}).json()["total"]["requests"] == 0
    supervisor.request_stop("test")
    supervisor.run()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/healthz")


def test_it_leaves_signals_alone(make_server: Callable[..., ApiServer]) -> None:
    """In the main thread, where uvicorn would take SIGTERM."""
    server, stop = make_server("127.0.0.1", 0), threading.Event()
    during = []

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.get("/healthz")
        during.append(signal.getsignal(signal.SIGTERM))
        stop.set()

    caller = threading.Thread(target=ask)
    before = signal.getsignal(signal.SIGTERM)
    caller.start()
    server.serve(stop)
    caller.join()
    assert during == [before]


def test_an_address_that_is_taken_is_named(make_server: Callable[..., ApiServer]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressUnusable, match=f"host '127.0.0.1', port {port}: Address already in use"):
            make_server("127.0.0.1", port)


def test_a_host_of_another_machine_is_named(make_server: Callable[..., ApiServer]) -> None:
    with pytest.raises(AddressUnusable, match=r"192\.0\.2\.1"):
        make_server("192.0.2.1", 0)
