"""Writing a segment's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.segment import SegmentInfo

ROW_GROUP_ROWS = 16_384
"""Rows that share their statistics: the grain at which a window skips data. Four times as many would save 1 %."""

# How Parquet encodes the columns: a few values over and over through dictionaries, other numbers as differences. Two
# thirds of the size and four times the speed of pyarrow's own choice, which tries a dictionary for everything.
_REPETITIVE = ["instance_id", "block_size_tokens", "block_bytes"]
_NUMBERS = [
    "timestamp_ns",
    "input_token_len",
    "hit_curve.list.element.start_required_blocks",
    "hit_curve.list.element.run_length",
    "fact_offset",
    "source_offset",
]


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The facts of these tables as tables of a row group each; the last one may be shorter, and none is empty."""
    waiting = FACT_SCHEMA.empty_table()
    for table in tables:
        waiting = pa.concat_tables([waiting, table])
        while waiting.num_rows >= ROW_GROUP_ROWS:
            yield waiting.slice(0, ROW_GROUP_ROWS)
            waiting = waiting.slice(ROW_GROUP_ROWS)
    if waiting.num_rows:
        yield waiting


def encode(info: SegmentInfo, facts: pa.Table | Iterable[pa.Table]) -> memoryview:
    """The bytes of a segment's file; the same facts give the same bytes, however they are cut.

    Args:
        info: what it is of all the facts.
        facts: of `FACT_SCHEMA`; of tables that come one after the other, a row group's facts are held at once.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        FACT_SCHEMA,
        compression="zstd",
        use_dictionary=_REPETITIVE,
        column_encoding=dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
        # Readers of any make find a plain Parquet schema, not Arrow's own copy of it.
        store_schema=False,
        # Parquet's own; without it a disk's flipped bits may decode as other numbers.
        write_page_checksum=True,
    ) as writer:
        for group in row_groups([facts] if isinstance(facts, pa.Table) else facts):
            writer.write_table(group.combine_chunks())  # in one piece: where a page ends depends on the pieces
        writer.add_key_value_metadata(info.metadata())
    return memoryview(sink.getvalue()).cast("B")
