"""Facts with their places in Kafka, in columns: as the engine's arrays or as an Arrow table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch

_SEGMENT = pa.struct(
    [
        pa.field("start_required_blocks", pa.int64(), nullable=False),
        pa.field("run_length", pa.int64(), nullable=False),
    ]
)
_CURVE = pa.list_(pa.field("element", _SEGMENT, nullable=False))

FACT_SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("instance_id", pa.string(), nullable=False),
        pa.field("timestamp_ns", pa.int64(), nullable=False),
        pa.field("input_token_len", pa.int64(), nullable=False),
        pa.field("block_size_tokens", pa.int64(), nullable=False),
        pa.field("block_bytes", pa.int64(), nullable=False),
        pa.field("hit_curve", _CURVE, nullable=False),
        pa.field("fact_offset", pa.int64(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
    ]
)
"""A segment's columns: those of the facts CSV, then the fact's own offset and its request's."""


@dataclass(frozen=True)
class ArchivedFacts:
    """R facts of one facts partition, in offset order.

    Attributes:
        facts: the facts.
        fact_offsets: int64[R], offset of each on the facts topic; ascending.
        source_offsets: int64[R], offset of each one's request on the requests topic.
    """

    facts: FactBatch
    fact_offsets: Int64Array
    source_offsets: Int64Array

    def __len__(self) -> int:
        return len(self.fact_offsets)

    @cached_property
    def table(self) -> pa.Table:
        """The facts as an Arrow table of `FACT_SCHEMA`; numbers are not copied."""
        facts, curves = self.facts, self.facts.hit_curves
        segments = pa.StructArray.from_arrays(
            [pa.array(curves.starts, pa.int64()), pa.array(curves.runs, pa.int64())], fields=list(_SEGMENT)
        )
        return pa.Table.from_arrays(
            [
                pa.array(facts.trace_ids, pa.string()),
                pa.array(facts.instance_ids, pa.string()),
                pa.array(facts.timestamps_ns, pa.int64()),
                pa.array(facts.input_token_lens, pa.int64()),
                pa.array(facts.block_size_tokens, pa.int64()),
                pa.array(facts.block_bytes, pa.int64()),
                pa.ListArray.from_arrays(pa.array(curves.offsets.astype(np.int32)), segments, type=_CURVE),
                pa.array(self.fact_offsets, pa.int64()),
                pa.array(self.source_offsets, pa.int64()),
            ],
            schema=FACT_SCHEMA,
        )

    @classmethod
    def from_table(cls, table: pa.Table) -> ArchivedFacts:
        """The inverse of `table`."""

        def numbers(name: str) -> Int64Array:
            column: Int64Array = table[name].to_numpy()
            return column

        return cls(
            FactBatch(
                table["trace_id"].to_pylist(),
                table["instance_id"].to_pylist(),
                numbers("timestamp_ns"),
                numbers("input_token_len"),
                numbers("block_size_tokens"),
                numbers("block_bytes"),
                curves_of(table),
            ),
            numbers("fact_offset"),
            numbers("source_offset"),
        )


def curves_of(table: pa.Table) -> FlatCurves:
    """The hit curves of a table with that column of `FACT_SCHEMA`."""
    curves = table["hit_curve"].combine_chunks()
    segments = curves.flatten()
    offsets = curves.offsets.to_numpy().astype(np.int64)
    # A slice's offsets do not begin at 0, but its flattened segments do.
    return FlatCurves(segments.field(0).to_numpy(), segments.field(1).to_numpy(), offsets - offsets[0])


def between(table: pa.Table, first: int, end: int) -> pa.Table:
    """The facts of a table of `FACT_SCHEMA` at offsets `first <= offset < end`."""
    offsets = table["fact_offset"]
    return table.filter(pc.and_(pc.greater_equal(offsets, first), pc.less(offsets, end)))
