"""Many binary events at once are read to what each is by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from litehit.request import Request
from service.event_protobuf import protobuf_event
from service.formats import FORMATS
from service.formats.event_messages import read_messages
from service.formats.native_protobuf import EVENT_MESSAGE
from tests.many_contents import check_many, contexts_of

BINARY = FORMATS["native-protobuf"]
PLAIN = protobuf_event(Request("a", "t", 5, np.array([1, -2], np.int64), 9))

INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-2, 300))
LIMITS = [0, 1, 127, 128, 2**31, 2**32, 2**35, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70 - 1]


def varint(value: int, more: int = 0) -> bytes:
    """A varint; longer than it need be by some bytes."""
    groups: list[int] = []
    while not groups or value:
        groups.append(value & 0x7F)
        value >>= 7
    groups += [0] * more
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


varints = st.builds(
    varint, st.one_of(INT64.map(lambda value: value % 2**64), st.sampled_from(LIMITS)), st.sampled_from([0, 0, 0, 1, 4])
)
texts = st.one_of(st.sampled_from([b"", b"a", b"instance", b"\xc3\xa4", b"\xff", b"x" * 130]), st.binary(max_size=3))
packed_keys = st.lists(INT64, max_size=4).map(lambda keys: np.array(keys, "<i8").tobytes())


def length_delimited(value: bytes) -> bytes:
    return varint(len(value)) + value


entries = st.lists(
    st.builds(lambda number, text: bytes([number << 3 | 2]) + length_delimited(text), st.integers(1, 3), texts),
    max_size=3,
).map(b"".join)


def field(number: int, wire: int, values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return values.map(lambda value: varint(number << 3 | wire) + value)


fields = st.one_of(
    field(1, 0, st.sampled_from([b"\0", b"\0", b"\1", b"\2", b"\3", b"\x80\0"])),
    field(2, 2, texts.map(length_delimited)),
    field(3, 2, texts.map(length_delimited)),
    field(4, 0, varints),
    field(5, 2, packed_keys.map(length_delimited)),
    field(5, 1, INT64.map(lambda key: key.to_bytes(8, "little", signed=True))),
    field(5, 2, texts.map(length_delimited)),
    field(6, 0, varints),
    field(7, 0, varints),
    field(15, 2, entries.map(length_delimited)),
    field(16, 2, texts.map(length_delimited)),
    st.builds(
        lambda number, wire, value: varint(number << 3 | wire) + value,
        st.integers(0, 20),
        st.integers(0, 7),
        st.binary(max_size=5),
    ),
)
unusual = st.lists(fields, max_size=8).map(b"".join)
whole = st.builds(
    lambda chosen, order: b"".join(order.sample(chosen, len(chosen))),
    st.tuples(
        field(2, 2, st.sampled_from([b"a", b"b"]).map(length_delimited)),
        field(3, 2, st.sampled_from([b"", b"t"]).map(length_delimited)),
        field(4, 0, INT64.map(lambda value: varint(value % 2**64))),
        field(5, 2, packed_keys.map(length_delimited)),
        field(6, 0, INT64.map(lambda value: varint(value % 2**64))),
        field(7, 0, INT64.map(lambda value: varint(value % 2**64))),
    ),
    st.randoms(use_true_random=False),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A whole message with a byte changed, removed or added, or cut off."""
    message = draw(whole)
    at = draw(st.integers(0, len(message)))
    end = draw(st.sampled_from([at, at + 1, len(message)]))
    return message[:at] + draw(st.binary(max_size=2)) + message[end:]


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.one_of(whole, unusual, damaged()), max_size=6))
@example([PLAIN, b"", PLAIN, EVENT_MESSAGE(type=1).SerializeToString(), PLAIN])
@example([PLAIN + bytes([4 << 3]) + varint(LIMITS[-1])])
@example([PLAIN[:-1], PLAIN])
@example([PLAIN + bytes([6 << 3]), b"\1" + PLAIN])
def test_many_messages_are_read_as_one_by_one(records: list[bytes]) -> None:
    check_many(BINARY, records)


def test_plain_messages_are_taken_beside_others() -> None:
    with_fields = EVENT_MESSAGE(instance_id="b", block_keys=[3], fields={"tenant": "x"}).SerializeToString()
    listed = [PLAIN, PLAIN + PLAIN, with_fields, b"", EVENT_MESSAGE(type=2).SerializeToString(), PLAIN]
    events = read_messages(listed)
    assert events.is_plain.tolist() == [True, False, True, False, False, True]
    read = [(place, request.instance_id) for place, request in events.requests(contexts_of(listed)).requests()]
    assert read == [(0, "a"), (2, "b"), (5, "a")]


@pytest.mark.parametrize("keys", [0, 1, 20_000, 100_000])
def test_long_messages_are_taken(keys: int) -> None:
    block_keys = np.random.default_rng(keys).integers(-(2**63), 2**63, keys, np.int64)
    listed = [PLAIN, protobuf_event(Request("b", "long", -1, block_keys, 16 * keys, 16)), PLAIN]
    _, (_, request), _ = read_messages(listed).requests(contexts_of(listed)).requests()
    assert np.array_equal(request.block_keys, block_keys)
    assert (request.instance_id, request.timestamp_ns, request.trace_block_size_tokens) == ("b", -1, 16)
