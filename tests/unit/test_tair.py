from __future__ import annotations

import pytest

from schemas.dead_letter import Reason
from service.formats.base import FormatError, RecordContext
from service.formats.tair import TairFormat

CONTEXT = RecordContext(instance_id=None, position=1, timestamp_ns=None)


def test_a_line_of_the_standard_trace_is_a_request() -> None:
    request = TairFormat().parse(
        b'{"type":"get","instance_id":"i","trace_id":"t","timestamp_ns":5,"keys":[-1,18446744073709551615],'
        b'"input_len":0,"query_type":"prefix_match","block_mask":[false],"sw_size":0,"location_spec_names":[],"ttl_us":0}',
        CONTEXT,
    )
    assert request is not None
    assert request.instance_id == "i"
    assert request.block_keys.tolist() == [-1, -1]
    assert request.input_token_len == 0


def test_a_write_is_ignored() -> None:
    line = b'{"type":"write","instance_id":"i","trace_id":"t","timestamp_ns":5,"keys":[1],"input_len":0,"block_mask":0}'
    assert TairFormat().parse(line, CONTEXT) is None


def test_the_old_form_without_type_is_refused_as_such() -> None:
    with pytest.raises(FormatError, match="type is absent: this is the trace's old form") as caught:
        TairFormat().parse(b'{"instance_id":"i","keys":[1]}', CONTEXT)
    assert caught.value.reason is Reason.UNKNOWN_TYPE


def test_another_type_is_refused_as_unknown() -> None:
    with pytest.raises(FormatError, match="type = 'put' is unknown"):
        TairFormat().parse(b'{"type":"put","keys":[1]}', CONTEXT)
