"""A part of some records is those of its rows, and what stands in them."""

from __future__ import annotations

import pytest

from service.records import SourceRecord
from tests import lanes_harness as harness

REQUESTS = harness.make_requests(6, seed=3)
VALUES = [harness.event(one) for one in REQUESTS]
VALUES[1], VALUES[4] = b"{", b'{"type":"write"}'
RECORDS = [SourceRecord("requests", 0, 10 + 3 * row, b"key", value, 1) for row, value in enumerate(VALUES)]


@pytest.mark.parametrize(("first", "end"), [(first, end) for first in range(6) for end in range(first + 1, 7)])
def test_a_part_is_what_its_records_are_by_themselves(first: int, end: int) -> None:
    part, alone = harness.read(RECORDS).part(first, end), harness.read(RECORDS[first:end])
    assert len(part) == end - first
    assert part.sources == alone.sources
    assert part.others == list(alone.others)
    assert [(row, one.trace_id, one.block_keys.tolist()) for row, one in part.requests.requests()] == [
        (row, one.trace_id, one.block_keys.tolist()) for row, one in alone.requests.requests()
    ]


@pytest.mark.parametrize("at", range(7))
def test_a_part_may_be_empty(at: int) -> None:
    part = harness.read(RECORDS).part(at, at)
    assert (len(part), len(part.requests), list(part.others), list(part.sources)) == (0, 0, [], [])
