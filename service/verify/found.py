"""What the topics and the store hold, in one form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.dead_letter import SOURCE_HEADER
from service.archive.archived_facts import ArchivedFacts, between
from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.chain_walk import ChainWalk
from service.archive.decode import source_header
from service.archive.errors import Changed, NotFound
from service.archive.segment import SegmentInfo, damage, decode_segment, describe
from service.archive.segment_writer import encode
from service.archive.store import Store
from service.errors import Difference
from service.records import Headers, SourceRecord

_OTHER_WRITER = re.compile(rf"parquet-cpp-arrow version (?!{re.escape(pa.__version__)}$)\d+\.\d+\.\d+")
_ROWS = 4096  # rows of a segment that are objects at once


@dataclass(frozen=True, slots=True)
class Found:
    """A fact or a dead letter where it was found.

    Attributes:
        place: where, for messages.
        offset: on its topic.
        source_offset: of its request.
        key, value, headers: its bytes; a segment keeps neither key nor headers, then `headers` is None.
    """

    place: str
    offset: int
    source_offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Gap:
    """Here something may be missing that can't be checked: it has expired, or is not archived yet."""


GAP = Gap()

FoundOrGap: TypeAlias = Found | Gap


def of_topic(records: Iterable[SourceRecord], low: int, requests_source: str) -> Iterator[FoundOrGap]:
    """The records of a facts or dead-letter partition, a gap first where its log does not begin at 0.

    Args:
        records: of the partition.
        low: first offset of its log.
        requests_source: `<requests topic>/<partition>`, which each must name in its header.

    Raises:
        Difference: a record does not say which request it comes from.
    """
    if low > 0:
        yield GAP
    for record in records:
        source = source_header(record.headers)
        topic_partition, _, offset = (source or b"").rpartition(b"/")
        if topic_partition != requests_source.encode() or not offset.isdigit():
            raise Difference(
                f"{record.source}: the header {SOURCE_HEADER} is {source!r}, not {requests_source}/<offset>; "
                f"only lanes may write to the topic"
            )
        yield Found(record.source, record.offset, int(offset), record.key, record.value, record.headers)


def of_segments(catalog: Catalog, chain: Chain) -> Iterator[FoundOrGap]:
    """The rows of a partition's segments; behind the last lies what is not archived yet.

    A gap stands where facts were removed, and where one was accepted.

    Raises:
        SegmentError: a file is damaged.
        Difference: a file's bytes are not those that its facts give.
        FactsExpired: facts were removed by retention before they were read.
    """
    if chain.expired:
        yield GAP
    walk = ChainWalk(catalog, chain)
    while (info := walk.segment) is not None:
        try:
            table = _checked_table(catalog.store, info)
        except (Changed, NotFound) as error:
            walk.look_again(error)
            continue
        begin, end = walk.part
        if info.gap_end is not None:
            yield GAP
        table = between(table, begin, end)
        for low in range(0, table.num_rows, _ROWS):
            rows = ArchivedFacts.from_table(table.slice(low, _ROWS))
            for fact, offset, source in zip(
                rows.facts, rows.fact_offsets.tolist(), rows.source_offsets.tolist(), strict=True
            ):
                place = f"{info.path}, offset {offset}"
                yield Found(place, offset, source, fact.instance_id.encode(), fact.to_json(), None)
        walk.passed(info.end_offset)
    yield GAP


def _checked_table(store: Store, info: SegmentInfo) -> pa.Table:
    """A segment's facts, once the whole file was found to be what they give, down to statistics nobody reads."""
    path = info.path
    data = store.read(path)
    found, table = decode_segment(path, data)
    if found != info:
        raise Changed(path)
    with damage(path):
        table.validate(full=True)
    described = describe(info.chain, info.base_offset, info.end_offset, table, info.gap_end, info.archived_ns)
    again = encode(described, table)
    with damage(path):
        writer = str(pq.read_metadata(pa.BufferReader(data)).created_by)
    # Another pyarrow may write the same facts differently; then only the facts themselves can be compared.
    if data != again and not _OTHER_WRITER.fullmatch(writer):
        place = next((at for at, (one, other) in enumerate(zip(data, again, strict=False)) if one != other), len(again))
        raise Difference(f"{path}: byte {place} of the file is not the one that its facts give; the file was altered")
    return table
