"""Serves an app over HTTP until told to stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from service.api.address import Address

_GRACE_SECONDS = 5
_log = structlog.get_logger()


class ApiServer:
    """An HTTP server that takes connections from construction on: no request is refused after it.

    Args:
        app: what to serve.
        address: where.

    Raises:
        AddressUnusable: another process listens there by now.

    Attributes:
        url: where it is reached, without a slash at the end.
    """

    def __init__(self, app: FastAPI, address: Address) -> None:
        self._socket = address.listen()
        self.url = address.url
        self._server = _Server(
            uvicorn.Config(
                app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=_GRACE_SECONDS
            )
        )

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
