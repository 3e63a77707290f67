"""Writing a segment's file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.segment import SegmentInfo

ROW_GROUP_ROWS = 65_536
"""Rows that share their statistics: the grain at which a window or an instance skips data."""

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


class SegmentWriter:
    """Makes a segment's file of facts that come in pieces; of facts it holds a row group at most, and the file.

    The same facts give the same bytes, however they are cut.
    """

    def __init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(
            self._sink,
            FACT_SCHEMA,
            compression="zstd",
            use_dictionary=_REPETITIVE,
            column_encoding=dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
            # Readers of any make find a plain Parquet schema, not Arrow's own copy of it.
            store_schema=False,
            # Parquet's own; without it a disk's flipped bits may decode as other numbers.
            write_page_checksum=True,
        )
        self._waiting = FACT_SCHEMA.empty_table()

    def write(self, table: pa.Table) -> None:
        """Add facts, of `FACT_SCHEMA`, behind those before."""
        self._waiting = pa.concat_tables([self._waiting, table])
        while self._waiting.num_rows >= ROW_GROUP_ROWS:
            self._write_group()

    def finish(self, info: SegmentInfo) -> memoryview:
        """The file's bytes; `info` is what it is of all that was written."""
        if self._waiting.num_rows:
            self._write_group()
        self._writer.add_key_value_metadata(info.metadata())
        self._writer.close()
        return memoryview(self._sink.getvalue()).cast("B")

    def _write_group(self) -> None:
        # In one piece: where a page ends depends on the pieces.
        self._writer.write_table(self._waiting.slice(0, ROW_GROUP_ROWS).combine_chunks())
        self._waiting = self._waiting.slice(ROW_GROUP_ROWS)


def encode(info: SegmentInfo, table: pa.Table) -> memoryview:
    """The bytes of a segment's file, all at once; the table is of `FACT_SCHEMA`."""
    writer = SegmentWriter()
    writer.write(table)
    return writer.finish(info)
