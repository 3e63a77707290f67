"""Serves an app over HTTP until told to stop."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from service.errors import AddressUnusable

_GRACE_SECONDS = 5
_log = structlog.get_logger()


class ApiServer:
    """An HTTP server on its own socket, which is open from construction on: no request is refused after it.

    Args:
        app: what to serve.
        host: address to listen on.
        port: port to listen on; 0 picks a free one.

    Raises:
        AddressUnusable: the address is taken, not allowed or not of this machine.
    """

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as error:
            raise AddressUnusable(host, port, error) from error
        # asyncio sets it only for sockets that name TCP as their protocol; without it an answer waits 40 ms for an ACK.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=_GRACE_SECONDS
            )
        )

    @property
    def url(self) -> str:
        """Where it is reached, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def serve(self, stop: threading.Event) -> None:
        """Serve in the calling thread, any thread, until `stop` is set and open calls have ended (5 s at most)."""
        _log.info("http_listening", url=self.url)
        watcher = threading.Thread(target=self._end_with, args=(stop,), name="http-stop", daemon=True)
        watcher.start()
        with self._socket:
            self._server.run(sockets=[self._socket])
        _log.info("http_stopped", url=self.url)

    def _end_with(self, stop: threading.Event) -> None:
        stop.wait()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals belong to the process, which sets the stop event; uvicorn would take them from it.
        yield
