from __future__ import annotations

from structlog.testing import capture_logs

from schemas.dead_letter import Reason
from service.lanes.dead_letter_log import DeadLetterLog
from service.lanes.dead_letters import dead_letter
from service.records import OutputRecord, SourceRecord


def letter(offset: int, reason: Reason = Reason.UNKNOWN_INSTANCE, partition: int = 0) -> OutputRecord:
    record = SourceRecord("requests", partition, offset, b"k", b"v", 1)
    return dead_letter(record, reason, f"sentence {offset}", topic="dead", max_bytes=10_000)


def test_the_first_is_told_at_once_and_the_rest_once_a_minute() -> None:
    now = 0.0
    log = DeadLetterLog(lambda: now)
    with capture_logs() as lines:
        log.note([letter(0), letter(1)])
        log.note([letter(2)])
        now = 59.9
        log.note([letter(3)])
        now = 60.0
        log.note([letter(4), letter(5)])
    assert [(line["count"], line["latest"], line["error"]) for line in lines] == [
        (1, "requests/0/0", "sentence 0"),
        (4, "requests/0/4", "sentence 4"),
    ]
    assert {(line["event"], line["log_level"], line["reason"]) for line in lines} == {
        ("dead_letters", "warning", "unknown-instance")
    }


def test_the_rest_of_a_burst_is_told_though_no_more_comes() -> None:
    now = 0.0
    log = DeadLetterLog(lambda: now)
    with capture_logs() as lines:
        log.note([letter(0), letter(1), letter(2), letter(7, Reason.LENGTH_MISMATCH)])
        now = 59.9
        log.tell_rest()
        now = 60.0
        log.tell_rest()
        log.tell_rest()
        now = 200.0
        log.tell_rest()
        log.note([letter(8), letter(9)])
        log.tell_rest(at_end=True)
        log.tell_rest(at_end=True)
    assert [(line["reason"], line["count"], line["latest"], line["error"]) for line in lines] == [
        ("unknown-instance", 1, "requests/0/0", "sentence 0"),
        ("length-mismatch", 1, "requests/0/7", "sentence 7"),
        ("unknown-instance", 2, "requests/0/2", "sentence 2"),
        ("unknown-instance", 1, "requests/0/8", "sentence 8"),
        ("unknown-instance", 1, "requests/0/9", "sentence 9"),
    ]


def test_each_partition_and_reason_is_told_by_itself() -> None:
    log = DeadLetterLog(lambda: 0.0)
    with capture_logs() as lines:
        log.note([letter(0), letter(1, Reason.LENGTH_MISMATCH), letter(2, partition=1)])
    assert [(line["partition"], line["reason"]) for line in lines] == [
        (0, "unknown-instance"),
        (0, "length-mismatch"),
        (1, "unknown-instance"),
    ]
