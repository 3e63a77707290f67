from __future__ import annotations

import pytest

from litehit.request import Request
from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext
from service.formats.native import NativeFormat

CONTEXT = RecordContext(instance_id="default", position=7, timestamp_ns=99)


def test_the_records_own_fields_win_over_the_context() -> None:
    request = NativeFormat().parse(
        b'{"type":"request","instance_id":"a","trace_id":"x","timestamp_ns":-5,"block_keys":[1],"input_token_len":9}',
        CONTEXT,
    )
    assert isinstance(request, Request)
    assert (request.instance_id, request.trace_id, request.timestamp_ns) == ("a", "x", -5)
    assert request.trace_block_size_tokens is None


def test_a_write_is_recognised_and_ignored() -> None:
    assert NativeFormat().parse(b'{"type":"write","keys":[1,"x"]}', CONTEXT) is None
    assert NativeFormat().parse(b'{"type":"write"}', RecordContext(None, 1, None)) is None


@pytest.mark.parametrize(
    ("record", "reason", "sentence"),
    [
        (b'{"keys":[1]}', Reason.UNKNOWN_TYPE, 'type is absent; send "request"'),
        (b'{"type":"put","keys":[1]}', Reason.UNKNOWN_TYPE, "type = 'put' is unknown; send \"request\""),
        (b'{"type":5}', Reason.UNKNOWN_TYPE, "type = '5' is unknown"),
        (
            b'{"type":"get","keys":[1],"instance_id":""}',
            Reason.INVALID_FIELD,
            "instance_id = '': String must have at least 1 character",
        ),
        (
            b'{"type":"get","keys":[1],"trace_id":null}',
            Reason.INVALID_FIELD,
            "trace_id = None: must be a valid string",
        ),
        (
            b'{"type":"get","keys":[1],"input_len":1.5}',
            Reason.INVALID_FIELD,
            "input_len = 1.5: must be a valid integer",
        ),
        (
            b'{"type":"get","keys":[1],"timestamp_ns":9223372036854775808}',
            Reason.INVALID_FIELD,
            "timestamp_ns = 9223372036854775808: must be less than or equal to 9223372036854775807",
        ),
        (b'{"type":"get"}', Reason.INVALID_FIELD, "block_keys is absent; send the key of each full block"),
        (b'{"type":"get","keys":[1,true]}', Reason.KEY_TYPE, "keys[1] = True is a bool; send an integer"),
    ],
)
def test_a_refusal_names_field_value_and_remedy(record: bytes, reason: Reason, sentence: str) -> None:
    with pytest.raises(FormatError) as caught:
        NativeFormat().parse(record, CONTEXT)
    assert caught.value.reason is reason
    assert str(caught.value).startswith(sentence)


def test_a_long_value_is_cut() -> None:
    record = b'{"type":"get","keys":[1],"timestamp_ns":"' + b"x" * 10_000 + b'"}'
    with pytest.raises(FormatError) as caught:
        NativeFormat().parse(record, CONTEXT)
    assert len(str(caught.value)) < 200
