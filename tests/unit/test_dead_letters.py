"""A dead letter keeps the record whole where it fits, and says what it cut where it does not."""

from __future__ import annotations

import pytest

from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER, TRUNCATED_HEADER, DeadLetterHeaders, Reason
from service.lanes.dead_letters import dead_letter
from service.records import Headers, OutputRecord, SourceRecord


def letter(
    value: bytes | None, headers: Headers = (), *, max_bytes: int = 1000, sentence: str = "why", key: bytes = b"k"
) -> OutputRecord:
    record = SourceRecord("requests", 2, 7, key, value, 5, headers)
    return dead_letter(record, Reason.MALFORMED_JSON, sentence, topic="dead", max_bytes=max_bytes)


def size(record: OutputRecord) -> int:
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(content or b"") for name, content in record.headers)
    )


def test_headers_say_where_it_came_from_and_why_before_the_original_ones() -> None:
    output = letter(b"{", (("a", b"1"), ("litehit-source", b"forged"), ("a", None)))
    assert output == OutputRecord(
        "dead",
        2,
        b"k",
        b"{",
        (
            (SOURCE_HEADER, b"requests/2/7"),
            (REASON_HEADER, b"malformed-json"),
            (ERROR_HEADER, b"why"),
            ("a", b"1"),
            ("litehit-source", b"forged"),
            ("a", None),
        ),
        5,
    )


def test_a_tombstone_stays_one() -> None:
    assert letter(None).value is None
    assert letter(b"").value == b""


def test_a_value_that_just_fits_is_whole() -> None:
    limit = size(letter(b""))
    assert letter(b"x" * 50, max_bytes=limit + 50).value == b"x" * 50
    assert letter(b"x" * 51, max_bytes=limit + 50) != letter(b"x" * 50, max_bytes=limit + 50)


def test_a_value_too_large_is_cut_and_its_length_told() -> None:
    output = letter(bytes(range(256)) * 8, (("a", b"1"),))
    headers = dict(output.headers)
    assert size(output) == 1000
    assert (bytes(range(256)) * 8).startswith(output.value or b"-")
    assert DeadLetterHeaders.model_validate({name: (value or b"").decode() for name, value in headers.items()}) == (
        DeadLetterHeaders(source="requests/2/7", reason=Reason.MALFORMED_JSON, error="why", truncated=2048)
    )
    assert headers["a"] == b"1"


def test_original_headers_go_only_where_cutting_the_value_is_not_enough() -> None:
    output = letter(b"value", (("first", b"1"), ("second", b"2" * 2000)))
    headers = dict(output.headers)
    assert headers["first"] == b"1"
    assert "second" not in headers
    assert headers[TRUNCATED_HEADER] == b"5"
    assert size(output) <= 1000


@pytest.mark.parametrize("sentence", ["é" * 100_000, "\ud800" * 100_000])
def test_a_sentence_that_quotes_a_whole_record_is_cut(sentence: str) -> None:
    output = letter(b"{", sentence=sentence, max_bytes=100_000)
    assert len(dict(output.headers)[ERROR_HEADER] or b"") < 20_000
    assert output.value == b"{"
