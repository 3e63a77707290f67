"""Micro-batches are bounded by bytes; order and partitions stay."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.lanes.batches import cut_batches
from service.records import SourceRecord, SourceRecords

polls = st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 30), min_size=1, max_size=8), max_size=4)


def record(partition: int, offset: int, size: int) -> SourceRecord:
    return SourceRecord("t", partition, offset, None if size % 2 else b"k", b"v" * size if size else None, None)


def size_of(batch: dict[int, SourceRecords]) -> int:
    return sum(len(one.key or b"") + len(one.value or b"") for records in batch.values() for one in records)


@given(poll=polls, max_bytes=st.integers(1, 60))
def test_batches_hold_every_record_once_in_order_and_no_more_bytes_than_allowed(
    poll: dict[int, list[int]], max_bytes: int
) -> None:
    polled = {
        partition: SourceRecords.of([record(partition, offset, size) for offset, size in enumerate(sizes)])
        for partition, sizes in poll.items()
    }
    batches = list(cut_batches(polled, max_bytes))
    for partition, records in polled.items():
        assert [one for batch in batches for one in batch.get(partition, [])] == list(records)
    for batch in batches:
        count = sum(map(len, batch.values()))
        assert count == 1 or size_of(batch) <= max_bytes
    for batch, following in pairwise(batches):
        first = next(iter(following.values()))[:1]
        assert size_of(batch) + size_of({0: first}) > max_bytes
