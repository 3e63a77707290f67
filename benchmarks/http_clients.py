"""Clients of an HTTP service, each a process of its own, that time their calls."""

from __future__ import annotations

import http.client
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

Ask: TypeAlias = Callable[[random.Random], str]
"""Makes the path and query of a call; a function of a module, for it is sent to another process."""


@dataclass(frozen=True, slots=True)
class Load:
    """How calls are made.

    Attributes:
        clients: processes, each with one connection and one call at a time.
        seconds: how long.
        per_second: calls in a second, of all clients together, at random moments; None = the next as soon as one ends.
    """

    clients: int
    seconds: float
    per_second: float | None = None


def answer(url: str, path: str) -> bytes:
    """Call once.

    Raises:
        RuntimeError: the status is not 200.
    """
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
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
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
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


def _call(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status} {body[:500].decode()}")
    return body
