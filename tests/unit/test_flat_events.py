"""Many records at once are read to what each is by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from litehit.request import Request
from service.event_json import event_json
from service.formats import FORMATS
from service.formats.base import Content, FormatError, RecordContext, or_error
from service.formats.fast_event import EVENT_MEMBERS, EventFields
from service.formats.flat_events import read_flat_events
from tests.unit.test_fast_event import FULL, records

NATIVE = FORMATS["native"]
PLAIN = b'{"type":"request","instance_id":"a","trace_id":"t","timestamp_ns":5,"block_keys":[1,-2],"input_token_len":9}'

named = st.sampled_from([*EVENT_MEMBERS, "other", "type", "block_keys", "block_keys"])
plain_values = st.one_of(
    st.integers(-(2**63), 2**64).map(str),
    st.sampled_from(['"request"', '"get"', '"write"', '""', '"a b"', '"ä"', '"\\u0061"', "null", "true", "1.0", "-0"]),
    st.lists(st.integers(-(2**63) - 1, 2**64).map(str), max_size=3).map(lambda keys: f"[{', '.join(keys)}]"),
)
nearly_plain = st.dictionaries(named, plain_values, max_size=8).map(
    lambda members: ("{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}").encode()
)


def comparable(content: Content | FormatError) -> Any:
    if isinstance(content, FormatError):
        return content.reason, str(content)
    if isinstance(content, Request):
        return content._replace(block_keys=np.array(0)), content.block_keys.tolist()
    return content


@settings(max_examples=800, deadline=None)
@given(st.lists(st.one_of(records(), nearly_plain, nearly_plain), max_size=5))
@example([PLAIN, b"", PLAIN.replace(b",", b",\n"), FULL, b'{"type":"write"}', PLAIN])
@example([PLAIN[: PLAIN.index(b",-2")], PLAIN.replace(b'"t"', b'"u"'), PLAIN])
@example([PLAIN.replace(b'"a"', b'""'), PLAIN.replace(b"}", b',"trace_block_size_tokens":0}')])
@example([PLAIN.replace(b"}", b',"input_len":3}'), PLAIN.replace(b"}", b',"keys":[5]}')])
def test_many_records_are_read_as_one_by_one(listed: list[bytes]) -> None:
    contexts = [RecordContext("key", place, 7) for place in range(len(listed))]
    expected = [or_error(NATIVE.parse, record, context) for record, context in zip(listed, contexts, strict=True)]
    read = NATIVE.parse_many(listed, contexts)
    assert list(map(comparable, read)) == list(map(comparable, expected))


def test_plain_events_are_taken_beside_others() -> None:
    first, odd, last = read_flat_events([PLAIN, PLAIN.replace(b"[1", b'["1"'), PLAIN.replace(b'"t"', b'"u"')])
    assert odd is None
    assert isinstance(first, EventFields)
    assert isinstance(last, EventFields)
    assert (first.instance_id, first.trace_id, first.timestamp_ns, first.input_token_len) == ("a", "t", 5, 9)
    assert first.block_keys.tolist() == last.block_keys.tolist() == [1, -2]
    assert last.trace_id == "u"


@pytest.mark.parametrize("keys", [0, 1, 20_000, 100_000])
def test_long_records_are_taken(keys: int) -> None:
    """More than a window holds, between short ones."""
    rng = np.random.default_rng(keys)
    block_keys = rng.integers(-(2**63), 2**63, keys, np.int64)
    long = event_json(Request("b", "long", -1, block_keys, 16 * keys, 16))
    before, event, after = read_flat_events([PLAIN, long, PLAIN])
    assert before is not None
    assert after is not None
    assert event is not None
    assert np.array_equal(event.block_keys, block_keys)
    assert (event.timestamp_ns, event.trace_block_size_tokens) == (-1, 16)
