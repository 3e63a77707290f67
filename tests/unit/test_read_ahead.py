"""What a poll brought, read in the background."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from litehit.registration import Registration
from litehit.registry import Registry
from litehit.request import Request
from service import formats
from service.format_names import FormatName
from service.formats import TopicFormats
from service.formats.base import RecordContext
from service.formats.trace_format import TraceFormat
from service.lanes.committed import RequestsTopic
from service.lanes.lane import Lane, LaneTargets
from service.lanes.read_ahead import ReadAhead, ReadFailure
from service.lanes.requests_consumer import Polled
from service.lanes.topic_guard import TopicGuard
from service.records import SourceRecord, SourceRecords
from tests import lanes_harness as harness

TOPIC = RequestsTopic("requests", "generation", 2)
REQUESTS = harness.make_requests(40, seed=71)


def source(partition: int, offset: int) -> SourceRecord:
    return SourceRecord("requests", partition, offset, b"key", harness.event(REQUESTS[offset]), 5)


RECORDS = {partition: SourceRecords.of([source(partition, offset) for offset in range(40)]) for partition in (0, 1)}


def messages(*partitions: int) -> list[Message]:
    return [
        Message(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            timestamp=(TIMESTAMP_CREATE_TIME, record.timestamp_ms or 0),
        )
        for partition in partitions
        for record in RECORDS[partition]
    ]


@pytest.fixture
def lanes(tmp_path: Path) -> dict[int, Lane]:
    known: Registry = harness.registry(tmp_path)
    return {partition: Lane(partition, known, LaneTargets("facts", "dead", 10_000)) for partition in (0, 1)}


@pytest.fixture
def ahead() -> Iterator[ReadAhead]:
    ahead = ReadAhead(TopicGuard(TOPIC, None, lambda _: False), formats.of_topic(FormatName.NATIVE), 2**20)
    yield ahead
    ahead.close()


def test_records_are_read_in_order_for_the_lanes_there_are(ahead: ReadAhead, lanes: dict[int, Lane]) -> None:
    del lanes[1]
    read = ahead.begin(Polled(messages(0, 1), {0: 50, 1: 60}, [1]), lanes).result()
    assert (read.fault, read.ends, read.gone, read.lanes) == (None, {0: 50, 1: 60}, [1], lanes)
    (batch,) = read.batches
    assert list(batch) == [0]
    records = batch[0]
    assert not isinstance(records, ReadFailure)
    assert list(records.sources) == list(RECORDS[0])
    assert list(records.requests.columns.trace_ids) == [request.trace_id for request in REQUESTS]
    assert list(records.others) == []


def test_a_poll_of_many_bytes_is_several_batches(lanes: dict[int, Lane]) -> None:
    size = len(RECORDS[0][0].value or b"") * 10
    ahead = ReadAhead(TopicGuard(TOPIC, None, lambda _: False), formats.of_topic(FormatName.NATIVE), size)
    read = ahead.begin(Polled(messages(0, 1)), lanes).result()
    ahead.close()
    assert len(read.batches) > 4
    for partition, records in RECORDS.items():
        parts = [batch[partition] for batch in read.batches if partition in batch]
        assert [one for part in parts if not isinstance(part, ReadFailure) for one in part.sources] == list(records)


def test_a_fault_of_the_reader_is_told_for_the_partition_it_befell(lanes: dict[int, Lane]) -> None:
    class Broken(TraceFormat):
        name = "broken"

        def parse(self, record: bytes, context: RecordContext) -> Request | Registration | None:
            if record == RECORDS[1][7].value and context.position == 7 and broken:
                raise ZeroDivisionError
            return formats.get("native").parse(record, context)

    broken = True
    ahead = ReadAhead(TopicGuard(TOPIC, None, lambda _: False), TopicFormats(Broken(), {}), 2**20)
    read = ahead.begin(Polled(messages(1)), lanes).result()
    broken = False
    whole = ahead.begin(Polled(messages(1)), lanes).result()
    ahead.close()
    failure = read.batches[0][1]
    assert isinstance(failure, ReadFailure)
    assert failure.first == RECORDS[1][0]
    assert isinstance(failure.error, ZeroDivisionError)
    assert not isinstance(whole.batches[0][1], ReadFailure)


def test_nothing_is_read_of_a_topic_that_is_another_now(
    lanes: dict[int, Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def fault(_: TopicGuard) -> str:
        nonlocal asked
        asked += 1
        return "the topic was recreated"

    monkeypatch.setattr(TopicGuard, "fault", fault)
    ahead = ReadAhead(TopicGuard(TOPIC, None, lambda _: False), formats.of_topic(FormatName.NATIVE), 2**20)
    read = ahead.begin(Polled(messages(0, 1)), lanes).result()
    assert (read.fault, list(read.batches)) == ("the topic was recreated", [])
    assert ahead.begin(Polled(), lanes).result().fault is None  # an empty poll needs no answer
    ahead.close()
    assert asked == 1
