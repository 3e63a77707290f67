"""What the log says of requests' times: once a partition, and only of what is hardly meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from litehit.registry import Registry
from litehit.request import Request
from service.lanes.lane import Lane
from service.lanes.time_log import TimeLog
from tests import lanes_harness as harness
from tests import snapshots_made as made


@pytest.fixture
def known(tmp_path: Path) -> Registry:
    return harness.registry(tmp_path)


def told(lane: Lane, log: TimeLog, times: Sequence[int]) -> list[str]:
    requests = [Request("chat-a", f"t{time}", time, np.array([1], np.int64), 4) for time in times]
    output = lane.process(harness.read(made.records_of(requests, first=lane.next_offset)))
    with capture_logs() as lines:
        log.note(3, output)
    return [line["event"] for line in lines]


def test_each_is_told_once(known: Registry) -> None:
    lane, log = made.new_lane(known), TimeLog()
    assert told(lane, log, [1_700_000_000_000]) == ["time_unit"]
    assert told(lane, log, [1_700_000_000_001]) == []
    assert told(lane, log, [1_700_000_000_000]) == ["times_go_back"]
    assert told(lane, log, [1_700_000_000_000]) == []


def test_times_in_order_since_the_start_are_not_told(known: Registry) -> None:
    lane, log = made.new_lane(known), TimeLog()
    assert told(lane, log, [0, 1, 1, 10**9]) == []
    assert told(lane, log, [1_700_000_000_000]) == []  # a trace that lasts for long
