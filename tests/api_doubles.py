"""Doubles for tests of the API: a client that needs no socket, and segments that lie in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI

from service.api.pages import RowGroups
from service.api.rows import FactRows
from service.archive.archived_facts import ArchivedFacts
from service.archive.errors import NotFound
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
    """Segments in memory, in row groups of a few rows: what an index reads."""

    ROW_GROUP = 2

    def __init__(self) -> None:
        self.rows: dict[SegmentInfo, ArchivedFacts] = {}
        self.reads: list[SegmentInfo] = []

    def row_groups(self, info: SegmentInfo) -> RowGroups:
        """See `SegmentReader.row_groups`."""
        times = [part.times_ns for part in self._parts(info)]
        return RowGroups(
            np.array([len(one) for one in times]),
            np.array([one.min() for one in times]),
            np.array([one.max() for one in times]),
        )

    def read(self, info: SegmentInfo, places: Sequence[int]) -> Iterator[FactRows]:
        """See `SegmentReader.read`."""
        self.reads.append(info)
        parts = self._parts(info)
        yield from (parts[place] for place in places)

    def _parts(self, info: SegmentInfo) -> list[FactRows]:
        if info not in self.rows:
            raise NotFound(info.path)
        rows = FactRows.of(self.rows[info].facts)
        return [
            rows.select(np.arange(first, min(first + self.ROW_GROUP, len(rows))))
            for first in range(0, len(rows), self.ROW_GROUP)
        ]
