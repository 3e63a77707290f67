from __future__ import annotations

import pytest

from litehit.request import Request
from schemas.dead_letter import Reason
from service import formats
from service.formats.base import FormatError, RecordContext
from service.formats.contents import Contexts
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


@pytest.mark.parametrize("format_name", ["native", "tair"])
@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            '"block_keys":[1,2],"keys":[1]',
            "block_keys = [1, 2] and keys = [1] contradict each other; send one of the two",
        ),
        ('"keys":[5],"block_keys":[]', "block_keys = [] and keys = [5] contradict"),
        ('"block_keys":[1],"keys":[1.0]', "block_keys = [1] and keys = [1.0] contradict"),
        (
            '"block_keys":[],"input_token_len":5,"input_len":6',
            "input_token_len = 5 and input_len = 6 contradict each other; send one of the two",
        ),
        ('"keys":[],"input_len":0,"input_token_len":16', "input_token_len = 16 and input_len = 0 contradict"),
    ],
)
def test_two_names_of_a_field_that_contradict_each_other_are_told(format_name: str, members: str, words: str) -> None:
    record = f'{{"type":"request","instance_id":"a","timestamp_ns":1,{members}}}'.encode()
    contexts = Contexts(["a"], [0], [0], [None])
    ((_, error),) = formats.get(format_name).parse_many([record], contexts).others
    assert isinstance(error, FormatError)
    assert error.reason is Reason.INVALID_FIELD
    assert words in str(error)


@pytest.mark.parametrize(
    "members",
    ['"block_keys":[1,-1],"keys":["1",18446744073709551615],"input_token_len":5,"input_len":5', '"keys":[1,-1]'],
)
def test_two_names_of_a_field_may_say_the_same(members: str) -> None:
    record = f'{{"type":"request","instance_id":"a","timestamp_ns":1,"x":NaN,{members}}}'.encode()
    request = formats.get("native").parse(record, RecordContext(None, 0, None))
    assert isinstance(request, Request)
    assert request.block_keys.tolist() == [1, -1]
