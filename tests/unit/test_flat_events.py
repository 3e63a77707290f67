"""Many records at once are read to what each is by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from litehit.request import Request
from service.event_json import event_json
from service.formats import FORMATS
from service.formats.fast_event import EVENT_MEMBERS
from service.formats.flat_events import read_flat_events
from tests.many_contents import check_many, contexts_of
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


@settings(max_examples=800, deadline=None)
@given(st.lists(st.one_of(records(), nearly_plain, nearly_plain), max_size=5))
@example([PLAIN, b"", PLAIN.replace(b",", b",\n"), FULL, b'{"type":"write"}', PLAIN])
@example([PLAIN[: PLAIN.index(b",-2")], PLAIN.replace(b'"t"', b'"u"'), PLAIN])
@example([PLAIN.replace(b'"a"', b'""'), PLAIN.replace(b"}", b',"trace_block_size_tokens":0}')])
@example([PLAIN.replace(b"}", b',"input_len":3}'), PLAIN.replace(b"}", b',"keys":[5]}')])
def test_many_records_are_read_as_one_by_one(listed: list[bytes]) -> None:
    check_many(NATIVE, listed)


def test_plain_events_are_taken_beside_others() -> None:
    listed = [PLAIN, PLAIN.replace(b"[1", b'["1"'), PLAIN.replace(b'"t"', b'"u"')]
    (place, first), (other_place, last) = read_flat_events(listed, contexts_of(listed)).requests()
    assert (place, other_place) == (0, 2)
    assert (first.instance_id, first.trace_id, first.timestamp_ns, first.input_token_len) == ("a", "t", 5, 9)
    assert first.block_keys.tolist() == last.block_keys.tolist() == [1, -2]
    assert last.trace_id == "u"


@pytest.mark.parametrize("keys", [0, 1, 20_000, 100_000])
def test_long_records_are_taken(keys: int) -> None:
    """More than a window holds, between short ones."""
    rng = np.random.default_rng(keys)
    block_keys = rng.integers(-(2**63), 2**63, keys, np.int64)
    listed = [PLAIN, event_json(Request("b", "long", -1, block_keys, 16 * keys, 16)), PLAIN]
    _, (_, event), _ = read_flat_events(listed, contexts_of(listed)).requests()
    assert np.array_equal(event.block_keys, block_keys)
    assert (event.instance_id, event.timestamp_ns, event.trace_block_size_tokens) == ("b", -1, 16)
