from __future__ import annotations

import json
from dataclasses import replace

from service.api.as_of_header import AS_OF, MAX_LENGTH, OMITTED, as_of_headers
from service.api.fact_log import PinnedChain
from service.api.open_facts import OpenTail
from service.archive.chain import Chain
from service.archive.errors import SegmentError
from service.archive.segment import ChainKey, SegmentInfo, segment_path


def pinned(generation: str, partition: int, *spans: tuple[int, int]) -> PinnedChain:
    key = ChainKey("litehit.facts", generation, partition)
    segments = [SegmentInfo(key, base, end, end - base, 0, 9) for base, end in spans]
    return PinnedChain(Chain.of(key, segments), OpenTail())


def test_each_partition_says_what_was_looked_at() -> None:
    expired = pinned("new", 1, (0, 4), (4, 9)).chain
    first = replace(expired.segments[0], rows=0, expired_rows=4)
    chains = [
        pinned("old", 0, (0, 7)),
        pinned("new", 0, (0, 4), (6, 8), (9, 12)),
        PinnedChain(Chain.of(expired.key, [first, expired.segments[1]]), OpenTail()),
    ]
    headers = as_of_headers(chains)
    assert headers.keys() == {AS_OF}
    assert json.loads(headers[AS_OF]) == {
        "litehit.facts": {"old": {"0": [0, 7]}, "new": {"0": [0, 12, [4, 6], [8, 9]], "1": [4, 9]}}
    }


def test_files_behind_the_end_that_cannot_be_read_are_told_by_their_offset() -> None:
    key = ChainKey("litehit.facts", "g", 0)
    damaged = [SegmentError(segment_path(key, base), "no footer") for base in (9, 2, 12)]
    chain = Chain.of(key, [SegmentInfo(key, 0, 1, 1, 0, 9), SegmentInfo(key, 4, 9, 5, 0, 9)], damaged)
    headers = as_of_headers([PinnedChain(chain, OpenTail())])
    assert json.loads(headers[AS_OF]) == {"litehit.facts": {"g": {"0": [0, 9, [1, 4], [9, None], [12, None]]}}}


def test_the_oldest_generations_are_left_out_where_there_are_many() -> None:
    chains = [
        pinned(f"{number:032x}", partition, (0, 10**6 + number)) for number in range(300) for partition in range(4)
    ]
    headers = as_of_headers(chains)
    assert MAX_LENGTH / 2 < len(headers[AS_OF]) <= MAX_LENGTH
    ((topic, generations),) = json.loads(headers[AS_OF]).items()
    shown = {
        ChainKey(topic, generation, int(partition)): reach
        for generation, partitions in generations.items()
        for partition, reach in partitions.items()
    }
    omitted = int(headers[OMITTED])
    assert shown == {one.chain.key: [0, one.end_offset] for one in chains[omitted:]}


def test_a_chain_of_too_many_holes_is_left_out_too() -> None:
    headers = as_of_headers([pinned("g", 0, *((offset, offset + 1) for offset in range(0, 2000, 2)))])
    assert headers == {AS_OF: "{}", OMITTED: "1"}
