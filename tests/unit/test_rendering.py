"""Facts become records in the order of their requests, whichever engine made them first."""

from __future__ import annotations

import json

import numpy as np

from litehit.instance import InstanceEngine
from litehit.registry import InstanceConfig
from litehit.request import Request, RequestBatch
from schemas.dead_letter import SOURCE_HEADER
from service.lanes.rendering import Computed, render
from service.records import SourceRecord, SourceRecords

SOURCES = SourceRecords.of(
    [SourceRecord("requests", 2, 10 + row, b"k", b"", None if row == 1 else 100 + row) for row in range(4)]
)


def computed(instance_id: str, rows: list[int], place: int) -> Computed:
    engine = InstanceEngine(InstanceConfig(instance_id, "g", 4, 4, 1024, False, 0, ()))
    requests = [Request(instance_id, f"t{row}", row, np.array([row]), 5) for row in rows]
    return Computed(np.array(rows), place, engine.process(RequestBatch.from_requests(requests)))


def test_facts_stand_in_the_order_of_their_requests_and_places() -> None:
    records = render("facts", SOURCES, [computed("ä", [0, 3], 0), computed("ä@fine", [0, 3], 1), computed("b", [1], 0)])
    assert [((one.key or b"").decode(), dict(one.headers)[SOURCE_HEADER], one.timestamp_ms) for one in records] == [
        ("ä", b"requests/2/10", 100),
        ("ä@fine", b"requests/2/10", 100),
        ("b", b"requests/2/11", 0),
        ("ä", b"requests/2/13", 103),
        ("ä@fine", b"requests/2/13", 103),
    ]
    assert {(one.topic, one.partition) for one in records} == {("facts", 2)}
    for one in records:
        fact = json.loads(one.value or b"")
        assert fact["instance_id"].encode() == one.key
        assert dict(one.headers)[SOURCE_HEADER] == b"requests/2/%d" % (10 + fact["timestamp_ns"])


def test_no_facts_are_no_records() -> None:
    assert render("facts", SOURCES, []) == ()
