"""Pages: the same whatever they are made of, and nothing but what was written is read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litehit.facts import FactBatch
from schemas.fact import RequestFact
from service.api import pages
from service.api.pages import PagesDamaged, RowGroups, SegmentPages, SegmentSums, decode, encode
from service.api.rows import FactRows
from service.archive.segment import ChainKey, SegmentInfo
from tests.histories import fact, small_facts

CHAIN = ChainKey("litehit.facts", "g1", 0)
INFO = SegmentInfo(CHAIN, 5, 9, 3, 1, pages.BUCKET_NS)
FACTS = [fact(1, (1, 4)), fact(2, (2, 3), (9, 2), instance="code"), fact(pages.BUCKET_NS, (6, 1))]


def rows_of(facts: list[RequestFact]) -> FactRows:
    return FactRows.of(FactBatch.from_facts(facts))


def made(info: SegmentInfo = INFO) -> SegmentSums:
    whole = np.array([3]), np.array([1]), np.array([pages.BUCKET_NS])
    return SegmentSums(info, SegmentPages.of(rows_of(FACTS)), RowGroups(*whole))


def content_of(one: SegmentPages) -> dict[str, Any]:
    sums = encode(SegmentSums(INFO, one, RowGroups(*[np.zeros(0, np.int64)] * 3)))
    assert bytes(sums) == bytes(encode(decode(INFO, bytes(sums))))
    return {"file": bytes(sums)}


@given(st.lists(st.lists(small_facts(), min_size=1, max_size=5), min_size=1, max_size=5))
def test_parts_joined_are_the_whole(parts: list[list[RequestFact]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "BUCKET_NS", 4)
        joined = SegmentPages.joined([SegmentPages.of(rows_of(facts)) for facts in parts])
        whole = SegmentPages.of(rows_of([one for facts in parts for one in facts]))
    assert content_of(joined) == content_of(whole)


def test_each_hour_has_its_facts() -> None:
    one = made().pages
    assert (one.hours.tolist(), one.first_ns.tolist(), one.last_ns.tolist()) == (
        [0, 1],
        [1, pages.BUCKET_NS],
        [2, pages.BUCKET_NS],
    )
    assert [one.bucket_range(place, place + 1)[0].requests.sum() for place in (0, 1)] == [2, 1]
    assert one.hour(1) == (pages.BUCKET_NS, 2 * pages.BUCKET_NS)


def test_a_truncated_file_is_damaged() -> None:
    content = bytes(encode(made()))
    for length in range(len(content)):
        with pytest.raises(PagesDamaged):
            decode(INFO, content[:length])


def test_any_flipped_bit_of_content_is_damage() -> None:
    content = bytes(encode(made()))
    header = 8 + int.from_bytes(content[:8], "little")
    for place in range(header, len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        with pytest.raises(PagesDamaged):
            decode(INFO, bytes(flipped))


def test_a_header_of_other_bytes_gives_the_same_pages_or_damage() -> None:
    content = bytes(encode(made()))
    header = 8 + int.from_bytes(content[:8], "little")
    for place in range(header):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        try:
            read = decode(INFO, bytes(flipped))
        except PagesDamaged:
            continue
        assert bytes(encode(read)) == content


@pytest.mark.parametrize(
    "info",
    [
        replace(INFO, end_offset=10),
        replace(INFO, rows=2),
        replace(INFO, last_time_ns=7),
        replace(INFO, chain=ChainKey("litehit.facts", "g2", 0)),
    ],
)
def test_pages_of_another_segment_are_refused(info: SegmentInfo) -> None:
    with pytest.raises(PagesDamaged, match="another segment"):
        decode(info, bytes(encode(made())))


def test_pages_of_another_version_are_refused() -> None:
    content = bytes(encode(made()))
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    version = f'"litehit.format_version":"{pages.FORMAT_VERSION}"'.encode()
    assert header["__metadata__"]["litehit.format_version"] == str(pages.FORMAT_VERSION)
    with pytest.raises(PagesDamaged, match="format version 0"):
        decode(INFO, content.replace(version, b'"litehit.format_version":"0"'))


@pytest.mark.parametrize("content", [b"", b"no pages", b"\0" * 100])
def test_what_is_no_file_of_arrays(content: bytes) -> None:
    with pytest.raises(PagesDamaged):
        decode(INFO, content)
