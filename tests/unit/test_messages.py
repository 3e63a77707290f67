"""Messages become records, whatever of their fields is missing."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from service.messages import source_record, source_records
from service.records import SourceRecord


def message(partition: int, offset: int, **fields: Any) -> Message:
    return Message(topic="requests", partition=partition, offset=offset, **fields)


MESSAGES = [
    message(3, 7, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 5)),
    message(3, 8, value=b"v", timestamp=(TIMESTAMP_NOT_AVAILABLE, 9)),
    message(1, 2, key=b"k", headers=[("a", b"1"), ("b", None)], timestamp=(TIMESTAMP_CREATE_TIME, -1)),
    message(3, 10, key=b"k", value=b"", timestamp=(TIMESTAMP_CREATE_TIME, 6)),
]
RECORDS = [
    SourceRecord("requests", 3, 7, b"k", b"v", 5),
    SourceRecord("requests", 3, 8, None, b"v", None),
    SourceRecord("requests", 1, 2, b"k", None, None, (("a", b"1"), ("b", None))),
    SourceRecord("requests", 3, 10, b"k", b"", 6),
]


def test_one_by_one() -> None:
    assert list(map(source_record, MESSAGES)) == RECORDS


def test_by_partition_in_order() -> None:
    polled = source_records(MESSAGES)
    assert {partition: list(records) for partition, records in polled.items()} == {
        3: [RECORDS[0], RECORDS[1], RECORDS[3]],
        1: [RECORDS[2]],
    }
    assert polled[3].headers is None
    assert source_records([]) == {}
