"""What tests of the page share: known facts behind a real server, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, sync_playwright
from prometheus_client import CollectorRegistry

from litehit.facts import FactBatch
from litehit.instance import InstanceEngine
from litehit.registry import InstanceConfig
from litehit.request import RequestBatch
from litehit.totals import SlotTotals
from litehit.workload import WorkloadSpec, generate
from service.api.address import Address
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.server import ApiServer
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey
from service.lanes.counts import LaneCounts
from service.lanes.status import InstanceStatus, LanesStatus, LaneState, LaneStatus
from service.metrics import LanesMetrics
from tests.api_doubles import Segments

NOW = datetime(2026, 3, 18, 12, 34, 56, tzinfo=UTC)
"""The browser's clock at the start."""

TIME_ZONE = "Europe/Berlin"  # one hour before UTC at that time

CHAIN = ChainKey("litehit.facts", "generation-1", 0)
MODELS = ("agents", "chat", "rag")


def config(model: str) -> InstanceConfig:
    """How a model is registered; the more bytes a block has, the later its name comes in `MODELS`."""
    place = MODELS.index(model) if model in MODELS else 0
    return InstanceConfig(model, "demo", 64, 64, (8 << 20) * (1 + place), False, 0, (2.0, 8.0, 32.0))


def lanes_of(models: Sequence[str] = MODELS, *, behind: int = 0) -> LanesStatus:
    """The status of one lane that holds the models and is so many requests behind."""
    cores = tuple(InstanceStatus(config(model), 100, 4096, SlotTotals(config(model).capacity_gb)) for model in models)
    lane = LaneStatus(0, LaneState.RUNNING, 1000, 1000 + behind, None, LaneCounts(), cores)
    return LanesStatus(True, (lane,))


def made_facts(requests: int = 3000, *, seed: int = 1, models: Sequence[str] = MODELS) -> FactBatch:
    """Facts of several models over the four days up to `NOW`, by time."""
    start = NOW - timedelta(days=4)
    trace = generate(
        WorkloadSpec(
            requests=requests,
            seed=seed,
            instances=tuple(models),
            sessions_per_second=requests / 5 / (4.2 * 86_400),
            think_seconds=300,
            start_ns=int(start.timestamp()) * 10**9,
        )
    )
    listed = [one for one in trace.requests() if one.timestamp_ns < NOW.timestamp() * 1e9]
    parts = []
    for model in models:
        own = RequestBatch.from_requests([one for one in listed if one.instance_id == model])
        parts.append(InstanceEngine(config(model)).process(own))
    facts = FactBatch.concatenate(parts)
    return facts.select(np.argsort(facts.timestamps_ns, kind="stable"))


def archived(facts: FactBatch, first_offset: int = 0) -> ArchivedFacts:
    """The facts at consecutive offsets."""
    offsets = np.arange(first_offset, first_offset + len(facts), dtype=np.int64)
    return ArchivedFacts(facts, offsets, offsets)


@dataclass
class Served:
    """A server over an index.

    Attributes:
        index: what it answers from.
        url: where it is, without a slash at the end.
        lag: facts that each partition is behind.
        metrics: of the lanes; counts where the server has some.
    """

    index: FactIndex
    url: str
    lag: dict[ChainKey, int]
    metrics: LanesMetrics

    def append(self, facts: FactBatch) -> None:
        """Let facts arrive."""
        self.index.appended(CHAIN, archived(facts, self.index.size().facts))

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of an answer."""
        response = httpx.get(f"{self.url}{path}", params=parameters, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def serving_index(
    *, loaded: bool = True, port: int = 0, lanes: LanesStatus | None = None, **options: Any
) -> Iterator[Served]:
    """A server over an empty index, until the end of the block; with lanes in its process or without."""
    index = FactIndex(Segments(), window_rows=10**6)
    if loaded:
        index.loaded()
    lag: dict[ChainKey, int] = {CHAIN: 0}

    def known_lag() -> Mapping[ChainKey, int]:
        return lag

    registry = CollectorRegistry()
    metrics = LanesMetrics(registry)
    if lanes is not None:
        metrics.watch(lambda: lanes)
        options["lanes"] = lambda: lanes
    app = create_app(index, registry=registry, lag=known_lag, **options)
    server, stop = ApiServer(app, Address("127.0.0.1", port)), threading.Event()
    thread = threading.Thread(target=server.serve, args=(stop,))
    thread.start()
    try:
        yield Served(index, server.url, lag, metrics)
    finally:
        stop.set()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    Where it is missing the tests skip with the reason; under CI=true they fail.
    """
    path = shutil.which("chromium")
    if path is None:
        reason = "chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    # As root, as in a container, Chromium's sandbox can't start.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
