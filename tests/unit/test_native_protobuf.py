"""Request events in binary: as the schema file says, and the same requests as in JSON."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

import schemas
from litehit.registration import Registration
from litehit.request import Request
from schemas.dead_letter import Reason
from service.event_json import event_json
from service.event_protobuf import protobuf_event
from service.formats.base import FormatError, RecordContext
from service.formats.native import NativeFormat
from service.formats.native_protobuf import EVENT_MESSAGE, NativeProtobufFormat
from tests.strategies import event_requests

FORMAT = NativeProtobufFormat()
CONTEXT = RecordContext("default", 7, 5)
INT64 = st.integers(-(2**63), 2**63 - 1)


def plain(request: Request | Registration | None) -> tuple[Any, ...]:
    assert isinstance(request, Request)
    assert request.block_keys.dtype == np.int64
    return tuple(one.tolist() if isinstance(one, np.ndarray) else one for one in request)


def clear_json_names(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        clear_json_names(nested)


def test_the_messages_are_those_of_the_schema_file(tmp_path: Path) -> None:
    folder = Path(str(files(schemas)))
    out = tmp_path / "descriptors"
    arguments = ["protoc", f"-I{folder}", f"--descriptor_set_out={out}", str(folder / "request_event.proto")]
    assert protoc.main(arguments) == 0
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    (wanted,) = file.message_type
    found = descriptor_pb2.DescriptorProto()
    EVENT_MESSAGE.DESCRIPTOR.CopyToProto(found)
    for message in (wanted, found):
        clear_json_names(message)
    assert file.package == "litehit.v1"
    assert found == wanted


@given(event_requests)
def test_a_request_is_the_same_in_binary_and_in_json(request: Request) -> None:
    assert plain(FORMAT.parse(protobuf_event(request), CONTEXT)) == plain(request)
    assert plain(NativeFormat().parse(event_json(request), CONTEXT)) == plain(request)


@given(st.lists(INT64, min_size=1, max_size=9), st.integers(0, 9), st.booleans())
def test_keys_in_pieces_or_one_by_one_are_the_same_keys(keys: list[int], cut: int, packed: bool) -> None:
    def field(some: list[int]) -> bytes:
        values = [np.array([key], "<i8").tobytes() for key in some]
        if packed:
            joined = b"".join(values)
            return bytes([5 << 3 | 2, len(joined)]) + joined if some else b""
        return b"".join(bytes([5 << 3 | 1]) + value for value in values)

    request = FORMAT.parse(field(keys[:cut]) + field(keys[cut:]), CONTEXT)
    assert plain(request) == ("default", "", 5, keys, 0, None, False)


def test_what_is_absent_comes_from_the_record_and_the_rest_is_ignored() -> None:
    unknown = bytes([14 << 3 | 2, 3]) + b"new"
    record = EVENT_MESSAGE(block_keys=[0, -1]).SerializeToString()
    assert plain(FORMAT.parse(record, CONTEXT)) == plain(FORMAT.parse(record + unknown, CONTEXT))
    assert plain(FORMAT.parse(record, CONTEXT)) == ("default", "", 5, [0, -1], 0, None, False)
    assert FORMAT.parse(EVENT_MESSAGE(type=1).SerializeToString(), CONTEXT) is None


@pytest.mark.parametrize(
    ("record", "reason", "words"),
    [
        (b"", Reason.EMPTY_VALUE, "empty"),
        (b'{"type":"request"}', Reason.MALFORMED_PROTOBUF, "request_event.proto"),
        (bytes([5 << 3 | 2, 7]) + b"\0" * 7, Reason.MALFORMED_PROTOBUF, "no RequestEvent"),
        (bytes([1 << 3, 9]), Reason.UNKNOWN_TYPE, "type = 9"),
        (bytes([2 << 3 | 2, 0]), Reason.INVALID_FIELD, "instance_id"),
        (bytes([7 << 3, 0]), Reason.INVALID_FIELD, "trace_block_size_tokens = 0"),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(record: bytes, reason: Reason, words: str) -> None:
    with pytest.raises(FormatError, match=words) as caught:
        FORMAT.parse(record, CONTEXT)
    assert caught.value.reason is reason


@given(st.binary(max_size=60))
def test_no_bytes_break_it(record: bytes) -> None:
    try:
        request = FORMAT.parse(record, CONTEXT)
    except FormatError:
        return
    if isinstance(request, Request):
        assert list(request.block_keys) == list(EVENT_MESSAGE.FromString(record).block_keys)
