"""Liveness, readiness and metrics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from schemas.answers import Waiting
from service.api.chain_state import Extent
from service.api.index import FactIndex
from service.api.readiness import archive_waiting, lanes_waiting
from service.archive.segment import ChainKey
from service.archive.status import ArchiveStatus, PartitionStatus
from service.lanes.counts import LaneCounts
from service.lanes.status import LanesStatus, LaneState, LaneStatus
from tests.api_doubles import Client, Segments
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 2)


def lane(state: LaneState, *, next_offset: int | None = None, error: str | None = None) -> LaneStatus:
    return LaneStatus(2, state, next_offset, None, error, LaneCounts(), ())


def archived(next_offset: int, end_offset: int | None, error: str | None = None) -> PartitionStatus:
    return PartitionStatus(CHAIN, next_offset, 0, 0, end_offset, None, None, error)


def details(waiting: list[Waiting]) -> list[str]:
    return [one.detail for one in waiting]


def test_a_living_process_says_so(client: Client) -> None:
    assert client.get("/healthz").json()["status"] == "ok"


def test_ready_when_nothing_is_waited_for(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True, "waiting": []})


def test_readiness_says_what_every_role_waits_for(segments: Segments, connect: Callable[..., Client]) -> None:
    index = FactIndex(segments, window_rows=1)
    client = connect(index, status=[lambda: [Waiting(component="lanes", detail="partition 2 stopped", stopped=True)]])
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "ready": False,
        "waiting": [
            {"component": "api", "detail": "the store's segments are not listed yet", "stopped": False},
            {"component": "lanes", "detail": "partition 2 stopped", "stopped": True},
        ],
    }
    index.loaded()
    assert client.get("/readyz").json()["waiting"] == [
        {"component": "lanes", "detail": "partition 2 stopped", "stopped": True}
    ]
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (LanesStatus(False, ()), ["the consumer group has not assigned partitions yet"]),
        (LanesStatus(True, ()), []),
        (LanesStatus(True, (lane(LaneState.RUNNING),)), []),
        (
            LanesStatus(True, (lane(LaneState.RESTORING),)),
            ["partition 2 restores its caches: its next offset is not known yet"],
        ),
        (
            LanesStatus(True, (lane(LaneState.RESTORING, next_offset=7), lane(LaneState.STOPPED, error="gone"))),
            ["partition 2 restores its caches: next offset 7", "partition 2 stopped: gone"],
        ),
    ],
)
def test_what_lanes_wait_for(status: LanesStatus, says: list[str]) -> None:
    waiting = list(lanes_waiting(lambda: status)())
    assert details(waiting) == says
    assert [one.stopped for one in waiting] == ["stopped" in detail for detail in says]


def test_an_archiver_is_waited_for_until_it_has_what_stood_there_when_it_was_met() -> None:
    now = ArchiveStatus("can't begin yet: no store")
    waiting = archive_waiting(lambda: now)
    assert details(list(waiting())) == ["can't begin yet: no store"]
    now = ArchiveStatus(None, (archived(0, None),))
    assert details(list(waiting())) == ["partition 2 does not know yet where its facts end"]
    now = ArchiveStatus(None, (archived(3, 10),))
    assert details(list(waiting())) == ["partition 2 is behind: offset 3 of 10"]
    now = ArchiveStatus(None, (archived(10, 1000),))
    assert details(list(waiting())) == []
    now = ArchiveStatus(None, (archived(10, 1000, error="bad fact"),))
    assert details(list(waiting())) == ["partition 2 stopped: bad fact"]
    assert [one.stopped for one in waiting()] == [True]


def test_metrics_count_calls_by_route_and_show_the_index(index: FactIndex, connect: Callable[..., Client]) -> None:
    registry = CollectorRegistry()
    client = connect(index, registry=registry)
    index.appended(CHAIN, rows_of([fact(1), fact(2, instance="other")], 0))
    client.get("/query", [("capacity_gb", 1)])
    client.get("/query")
    client.get("/query/../etc")
    client.request("POST", "/query")
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if "le" not in sample.labels
    }
    assert samples["litehit_http_requests_total", "/query", "200"] == 1
    assert samples["litehit_http_requests_total", "/query", "422"] == 1
    assert samples["litehit_http_requests_total", "/query", "405"] == 1
    assert samples["litehit_http_requests_total", "unmatched", "404"] == 1
    assert samples["litehit_http_request_seconds_count", "/query"] == 3
    assert samples["litehit_index_facts",] == 2
    assert samples["litehit_index_tail_facts",] == 2
    assert samples["litehit_index_segments",] == 0
    assert samples["litehit_index_groups",] == 2
    assert samples["litehit_index_unreadable_files",] == 0
    assert samples["litehit_index_missing_offsets",] == 0
    damaged = ("a.parquet: it is cut off", "b.parquet: it is cut off")
    index.follow([], (), {CHAIN: Extent(missing=((3, 5), (9, 10)), unreadable=damaged)})
    shown = client.get("/metrics").text
    assert "litehit_index_unreadable_files 2.0" in shown
    assert "litehit_index_missing_offsets 3.0" in shown


def test_metrics_as_openmetrics_for_a_scraper_that_asks(client: Client) -> None:
    response = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.text.endswith("# EOF\n")


def test_a_process_without_the_api_still_serves_probes_and_scrapers(connect: Callable[..., Client]) -> None:
    client = connect(None, status=[lambda: [Waiting(component="lanes", detail="partition 2 is restoring")]])
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").json()["waiting"][0]["detail"] == "partition 2 is restoring"
    assert client.get("/metrics").status_code == 200
    assert client.get("/query", params=[("capacity_gb", 1)]).status_code == 404


def test_the_smallest_capacities_are_gauges(index: FactIndex, client: Client) -> None:
    def gauged() -> dict[tuple[str, str], float]:
        (family,) = [
            one
            for one in text_string_to_metric_families(client.get("/metrics").text)
            if one.name == "litehit_instance_capacity_bytes"
        ]
        return {(one.labels["instance_id"], one.labels["of_ceiling"]): one.value for one in family.samples}

    assert gauged() == {}
    index.appended(CHAIN, rows_of([fact(10, (1, 10))], 0))
    shares = ["0.6", "0.8", "0.9", "0.95", "0.99", "0.995"]
    answer = client.get("/capacity", [("of_ceiling", share) for share in shares]).json()
    expected = [one["capacity_bytes"] for one in answer["instances"][0]["capacities"]]
    assert gauged() == dict(zip([("chat", share) for share in shares], expected, strict=True))
