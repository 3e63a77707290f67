"""Doubles for tests of the API: a client that needs no socket, and segments that lie in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI

from service.archive.archived_facts import ArchivedFacts
from service.archive.reader import FactFilter
from service.archive.segment import SegmentInfo


class Client:
    """Calls an app in its own event loop; an error inside the app is answered, as a server would."""

    def __init__(self, app: FastAPI) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://api"
        )

    def get(self, path: str, params: Collection[tuple[str, Any]] = (), **options: Any) -> httpx.Response:
        """GET with query parameters in the order given."""
        return self.request("GET", path, params=list(params), **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Any call."""
        return self._runner.run(self._client.request(method, path, **options))

    def close(self) -> None:
        """End the event loop."""
        self._runner.run(self._client.aclose())
        self._runner.close()


class Segments:
    """Rows of segments in memory: what an index reads."""

    def __init__(self) -> None:
        self.rows: dict[SegmentInfo, ArchivedFacts] = {}
        self.reads: list[SegmentInfo] = []

    def __call__(self, info: SegmentInfo, wanted: FactFilter) -> Iterator[ArchivedFacts]:
        self.reads.append(info)
        rows = self.rows[info]
        times = rows.facts.timestamps_ns.tolist()
        chosen = [
            row
            for row, (time, instance_id) in enumerate(zip(times, rows.facts.instance_ids, strict=True))
            if (wanted.from_ns is None or time >= wanted.from_ns)
            and (wanted.to_ns is None or time < wanted.to_ns)
            and (wanted.instance_ids is None or instance_id in wanted.instance_ids)
        ]
        for batch in np.array_split(np.array(chosen, np.int64), 2):
            yield ArchivedFacts(rows.facts.select(batch), rows.fact_offsets[batch], rows.source_offsets[batch])
