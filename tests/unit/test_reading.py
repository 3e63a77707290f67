"""A record is read as its header says, else as the topic's setting says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason
from service import formats
from service.event_protobuf import protobuf_event
from service.format_names import LINE_FORMATS, FormatName
from service.lanes.counts import Ignored
from service.lanes.read_records import Poison
from service.lanes.reading import read_records
from service.records import Headers, SourceRecord, SourceRecords
from tests.format_samples import SAMPLES, Plain, mooncake, native

MOONCAKE = json.dumps(mooncake(Plain([1], 3, 5, 512))).encode()
NATIVE = json.dumps(native(Plain([1], 3, 5, 512))).encode()


def content(
    value: bytes, headers: Headers = (), topic: FormatName = FormatName.NATIVE
) -> Request | Registration | Ignored | Poison:
    record = SourceRecord("requests", 0, 9, b"key", value, 7, headers)
    read = read_records(formats.of_topic(topic), SourceRecords.of([record]))
    requests = [request for _, request in read.requests.requests()]
    return requests[0] if requests else read.others[0][1]


def test_what_is_no_request_is_ignored() -> None:
    assert content(b'{"type":"write"}') is Ignored.WRITE
    assert content(b'{"event_type":"request_start"}', topic=FormatName.DYNAMO) is Ignored.WRITE


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_a_header_names_any_format(name: FormatName) -> None:
    sample = SAMPLES[name]
    value = json.dumps(sample.record(Plain([1, 2], 3, 5, sample.block))).encode()
    read = content(value, (("other", b"x"), ("litehit-format", name.encode())))
    assert isinstance(read, Request)
    assert read.instance_id == "key"
    assert read.timestamp_ns == 5_000_000


def test_a_header_names_the_binary_event() -> None:
    request = Request("a", "t", 5, np.array([1, -1], np.int64), 9)
    read = content(protobuf_event(request), (("litehit-format", b"native-protobuf"),))
    assert isinstance(read, Request)
    assert read.block_keys.tolist() == [1, -1]
    assert read._replace(block_keys=request.block_keys) == request


def test_the_setting_names_the_format_of_the_others() -> None:
    read = content(MOONCAKE, topic=FormatName.MOONCAKE)
    assert isinstance(read, Request)
    assert read.trace_id == "mooncake-9"
    assert isinstance(content(MOONCAKE), Poison)
    assert isinstance(content(NATIVE, (("litehit-format", b"native"),), topic=FormatName.MOONCAKE), Request)


def test_the_last_header_counts() -> None:
    assert isinstance(content(MOONCAKE, (("litehit-format", b"no"), ("litehit-format", b"mooncake"))), Request)


@pytest.mark.parametrize(
    ("value", "shown"), [(b"csv", "'csv'"), (b"auto", "'auto'"), (None, "''"), (b"\xff", "'\\ufffd'")]
)
def test_an_unknown_format_is_told(value: bytes | None, shown: str) -> None:
    read = content(NATIVE, (("litehit-format", value),))
    assert isinstance(read, Poison)
    assert read.reason is Reason.UNKNOWN_FORMAT
    shown = shown.encode().decode("unicode_escape")
    assert read.sentence.startswith(
        f"the header litehit-format = {shown} names no format; send one of native, native-protobuf, "
    )


def test_records_of_several_formats_stand_in_their_order() -> None:
    """With a tombstone, a bad header, a write and a registration between them; headers of others mean nothing."""
    request = Request("b", "binary", 5, np.array([1, -1], np.int64), 9)
    rows: list[tuple[bytes | None, Headers]] = [
        (MOONCAKE, (("litehit-format", b"mooncake"),)),
        (NATIVE, ()),
        (protobuf_event(request), (("litehit-format", b"native-protobuf"), ("litehit-instance", b"told"))),
        (None, ()),
        (NATIVE, (("traceparent", b"00"),)),
        (b'{"type":"write"}', ()),
        (NATIVE, (("litehit-instance", b"\xff"), ("litehit-format", b"csv"))),
        (b'{"type":"register","block_bytes":5}', ()),
        (protobuf_event(request), (("litehit-format", b"native-protobuf"),)),
        (MOONCAKE, (("litehit-format", b"mooncake"), ("litehit-instance", b"m"))),
        (NATIVE[:-1], (("litehit-instance", b""),)),
        (NATIVE, (("litehit-instance", b""),)),
        (protobuf_event(request), (("litehit-format", b"native-protobuf"), ("litehit-instance", b""))),
    ]
    records = [SourceRecord("r", 0, 20 + row, b"key", value, 7, headers) for row, (value, headers) in enumerate(rows)]
    read = read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of(records))
    requests = list(read.requests.requests())
    assert [(row, one.instance_id) for row, one in requests] == [
        (0, "key"),
        (1, "key"),
        (2, "told"),
        (4, "key"),
        (8, "b"),
        (9, "m"),
    ]
    assert requests[0][1].trace_id == "mooncake-20"
    assert requests[2][1].block_keys.tolist() == [1, -1]
    assert [row for row, _ in read.others] == [3, 5, 6, 7, 10, 11, 12]
    tombstone, write, bad_header, registration, *without = (other for _, other in read.others)
    assert isinstance(tombstone, Poison)
    assert tombstone.reason is Reason.EMPTY_VALUE
    assert write is Ignored.WRITE
    assert isinstance(bad_header, Poison)
    assert "litehit-instance" in bad_header.sentence
    assert isinstance(registration, Registration)
    assert registration.instance_id == "key"
    # What a record itself gets wrong is told before that its publisher found no instance.
    assert [other.reason for other in without if isinstance(other, Poison)] == [
        Reason.MALFORMED_JSON,
        Reason.INSTANCE_FIELD_MISSING,
        Reason.INSTANCE_FIELD_MISSING,
    ]


def test_a_key_that_is_no_text_is_told() -> None:
    value = b'{"type":"request","timestamp_ns":1,"block_keys":[]}'
    records = [SourceRecord("r", 0, place, key, value, 7, ()) for place, key in enumerate((b"\xffa", None, b"\xffa"))]
    read = read_records(formats.of_topic(FormatName.NATIVE), SourceRecords.of(records))
    told = [other.sentence for _, other in read.others if isinstance(other, Poison)]
    assert len(told) == 3
    assert told[0] == told[2] == told[1] + r"; the record's key b'\xffa' is no UTF-8, so it names none"
    assert "names no instance_id" in told[1]
