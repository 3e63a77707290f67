"""What becomes of a window's records: events, and the others as they are, in their order."""

from __future__ import annotations

import json

import pytest

from litehit.window import Window, windows_of
from service import formats
from service.format_names import FormatName
from service.formats.base import FormatError
from service.outgoing import Outgoing, OutgoingForm

WRITE = b'{"type": "write"}'
REGISTER = b'{"type": "register", "instance_id": "new", "block_size_tokens": 16, "block_bytes": 1}'
WRONG = b'{"type": "request", "block_keys": [1.5]}'
NOW_NS = 77


def event(instance_id: str | None, time_ns: int | None) -> bytes:
    stated = {"instance_id": instance_id, "timestamp_ns": time_ns}
    return json.dumps(
        {"type": "request", "block_keys": [1], **{name: value for name, value in stated.items() if value is not None}}
    ).encode()


LINES = [WRITE, event("a", 5), b"", WRONG, event(None, None), REGISTER, event("b", 6), b"{"]


def window(lines: list[bytes]) -> Window:
    (made,) = windows_of(enumerate(lines, 11))
    return made


def outgoing(name: FormatName, lines: list[bytes], *, raw: bool = False, named: bool = False) -> Outgoing:
    form = OutgoingForm(formats.get(name), FormatName.MOONCAKE, raw, False, "default", named)
    return form.of(window(lines), NOW_NS)


@pytest.mark.parametrize("raw", [False, True])
def test_all_stand_in_their_order_with_what_is_known_of_each(raw: bool) -> None:
    made = outgoing(FormatName.NATIVE, LINES, raw=raw, named=True)
    assert made.keys == ["default", "a", "default", "default", "new", "b", "default"]
    assert made.times_ns == [None, 5, None, NOW_NS, None, 6, None]
    of_requests = [headers.get("litehit-instance") for headers in made.headers]
    assert of_requests == [None, "a", "", "default", None, "b", ""]
    assert {headers["litehit-format"] for headers in made.headers} == {"native"}
    assert [(row, number, type(why)) for row, number, why in made.refused] == [
        (2, 14, FormatError),
        (6, 18, FormatError),
    ]
    given = [line for line in LINES if line]
    events = [row for row, (value, line) in enumerate(zip(made.values, given, strict=True)) if value != line]
    assert events == ([] if raw else [1, 3, 5])
    assert [json.loads(made.values[row])["timestamp_ns"] for row in events] == ([] if raw else [5, NOW_NS, 6])


def test_the_first_of_them_and_some_of_them() -> None:
    made = outgoing(FormatName.NATIVE, LINES)
    assert made.first(7) == made.first(8) == made
    first = made.first(3)
    assert (first.values, first.refused) == (made.values[:3], made.refused[:1])
    assert list(first.records(1, 9)) == list(zip(made.keys, made.values, made.headers, strict=True))[1:3]
    assert made.first(2).refused == []


def test_a_window_without_records_has_nothing_to_send() -> None:
    assert outgoing(FormatName.NATIVE, [b"", b" "]) == Outgoing([], [], [], [], ())


def test_records_that_are_alike_share_their_headers() -> None:
    line = b'{"timestamp": 1, "input_length": 600, "hash_ids": [1, 2]}'
    made = outgoing(FormatName.MOONCAKE, [line] * 3, named=True)
    assert made.headers == [{"litehit-format": "native", "litehit-instance": "default"}] * 3
    assert len({id(headers) for headers in made.headers}) == 1
