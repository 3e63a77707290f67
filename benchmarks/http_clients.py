"""Clients of an HTTP service, each a process of its own, that time their calls.

A client here is a socket and llhttp, the parser of Node.js, by way of `httptools`: about what a client written in C, Go
or Rust takes. One by Python's own `http.client`, which many Python libraries are built on, takes half a millisecond
longer for each call, and more when it wakes from a sleep, which is none of the service's doing; both can be measured.
"""

from __future__ import annotations

import http.client
import multiprocessing
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

import httptools
import numpy as np
from numpy.typing import NDArray

_TIMEOUT_SECONDS = 600
_READ_BYTES = 2**16

Ask: TypeAlias = Callable[[random.Random], str]
"""Makes the path and query of a call; a function of a module, for it is sent to another process."""


class Connection(Protocol):
    """A connection that is kept open, for one call at a time."""

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a call."""

    def close(self) -> None:
        """Close it."""


class FastConnection:
    """A socket and httptools."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._head = f"HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n"
        self._socket = socket.create_connection((place.hostname, place.port), _TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a call.

        Raises:
            ConnectionError: the service ended the connection.
        """
        self._socket.sendall(f"GET {path} {self._head}".encode())
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        while not answer.is_whole:
            received = self._socket.recv(_READ_BYTES)
            if not received:
                raise ConnectionError(f"{path}: the service closed the connection")
            parser.feed_data(received)
        return parser.get_status_code(), b"".join(answer.parts)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class _Answer:
    """What httptools tells of an answer."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_whole = False

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = True


class StandardConnection:
    """Python's own client."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT_SECONDS)

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a call."""
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read()

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Load:
    """How calls are made.

    Attributes:
        clients: processes, each with one connection and one call at a time.
        seconds: how long.
        per_second: calls in a second, of all clients together, at random moments; None = the next as soon as one ends.
        connect: what calls.
    """

    clients: int
    seconds: float
    per_second: float | None = None
    connect: Callable[[str], Connection] = FastConnection


def answer(url: str, path: str) -> bytes:
    """Call once.

    Raises:
        RuntimeError: the status is not 200.
    """
    connection = FastConnection(url)
    try:
        return _call(connection, path)
    finally:
        connection.close()


def latencies(url: str, ask: Ask, load: Load) -> NDArray[np.float64]:
    """Seconds of each call of a load, as a client sees them.

    A call that came due while its client still waited for an answer counts from when it was due, for the service kept
    it waiting in line. Where the client slept until it was due, it counts from when the client really woke: that the
    machine woke it late is none of the service's doing. What the client itself takes to write a call and to read its
    answer is in every number; the same load on a call that does nothing says how much that is.
    """
    with multiprocessing.get_context("spawn").Pool(load.clients) as pool:
        seeds = range(load.clients)
        return np.concatenate(pool.starmap(_client, [(url, ask, load, seed) for seed in seeds], chunksize=1))


def _client(url: str, ask: Ask, load: Load, seed: int) -> NDArray[np.float64]:
    connection = load.connect(url)
    dice = random.Random(seed)
    _call(connection, ask(dice))
    seconds = []
    begin = due = time.perf_counter()
    while due - begin < load.seconds:
        if load.per_second is not None:
            due += dice.expovariate(load.per_second / load.clients)
            is_early = time.perf_counter() < due
            if is_early:
                time.sleep(max(0.0, due - time.perf_counter()))
            since = time.perf_counter() if is_early else due
        else:
            since = due = time.perf_counter()
        _call(connection, ask(dice))
        seconds.append(time.perf_counter() - since)
    connection.close()
    return np.array(seconds)


def _call(connection: Connection, path: str) -> bytes:
    status, body = connection.get(path)
    if status != 200:
        raise RuntimeError(f"{path}: {status} {body[:500].decode()}")
    return body
