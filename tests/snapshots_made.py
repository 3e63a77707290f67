"""Snapshots of real lanes for tests, and what is equal in two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from litehit.registry import Registry
from litehit.request import Request
from service.lanes.committed import RequestsTopic
from service.lanes.lane import Lane, LaneTargets
from service.lanes.snapshot import Snapshot, encode
from service.records import SourceRecord
from tests import lanes_harness as harness

TOPIC = RequestsTopic("requests", "generation", 4)
TARGETS = LaneTargets("facts", "dead", 1_000_000)


def new_lane(known: Registry, restored: Snapshot | None = None, partition: int = 3) -> Lane:
    return Lane(partition, known, TARGETS, restored=restored)


def records_of(requests: Sequence[Request], first: int = 0, partition: int = 3) -> list[SourceRecord]:
    return [
        SourceRecord("requests", partition, offset, b"key", harness.event(request), 1_700_000_000_000)
        for offset, request in enumerate(requests, first)
    ]


def snapshot_of(lane: Lane, topic: RequestsTopic = TOPIC) -> Snapshot:
    return lane.freeze().snapshot(topic)


def made_snapshot(known: Registry, records: int = 200, partition: int = 3) -> Snapshot:
    """Of a lane that has processed so many records."""
    lane = new_lane(known, partition=partition)
    lane.process(harness.read(records_of(harness.make_requests(records, seed=31), partition=partition)))
    return snapshot_of(lane)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Whether both say the same but for when they were taken."""
    return encode(_timeless(one)) == encode(_timeless(other))


def _timeless(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, taken_at=0.0)
