"""What a lane writes of a record is read back as it was, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from schemas.dead_letter import ERROR_HEADER, REASON_HEADER, SOURCE_HEADER, TRUNCATED_HEADER, Reason
from service.dead_letter_reader import DeadLetter
from service.lanes.dead_letters import dead_letter
from service.records import Headers, SourceRecord

OWN: Headers = ((SOURCE_HEADER, b"requests/2/7"), (REASON_HEADER, b"malformed-json"), (ERROR_HEADER, b"why"))


def stored(headers: Headers) -> SourceRecord:
    return SourceRecord("dead", 2, 0, b"k", b"{", 5, headers)


@pytest.mark.parametrize(
    "original",
    [(), (("tap", b"1"), ("tap", None)), OWN, (("x", b""), (TRUNCATED_HEADER, b"9"))],
    ids=["none", "some", "a dead letter's own", "a later cut"],
)
@pytest.mark.parametrize("max_bytes", [10_000, 500])
def test_a_dead_letter_is_read_as_it_was_written(original: Headers, max_bytes: int) -> None:
    value = b"x" * 1000
    record = SourceRecord("requests", 2, 7, b"k", value, 5, original)
    written = dead_letter(record, Reason.KEY_TYPE, "why\ud800", topic="dead", max_bytes=max_bytes)
    letter = DeadLetter.read(SourceRecord("dead", 2, 0, written.key, written.value, 5, written.headers))
    assert letter is not None
    assert (letter.said.source, letter.said.reason) == ("requests/2/7", Reason.KEY_TYPE)
    assert letter.said.error == "why\\ud800"
    assert letter.said.truncated == (None if max_bytes == 10_000 else len(value))
    assert letter.headers == original
    assert (letter.record.value == value) == (letter.said.truncated is None)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        OWN[:2],
        OWN[1:],
        (OWN[0], (REASON_HEADER, b"bad-luck"), OWN[2]),
        (*OWN, (TRUNCATED_HEADER, b"much")),
        (("tap", b"1"), *OWN),
    ],
)
def test_what_no_lane_has_written_is_none(headers: Headers) -> None:
    assert DeadLetter.read(stored(headers)) is None
