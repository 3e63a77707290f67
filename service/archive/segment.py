"""One segment: the facts of a range of offsets as an immutable Parquet file that says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.archive.archived_facts import FACT_SCHEMA
from service.archive.errors import SegmentError
from service.archive.store import Store

FACTS_FOLDER = "facts"
FORMAT_VERSION = 1
ROW_GROUP_ROWS = 65_536
"""Rows that share their statistics: the grain at which a window or an instance skips data."""

_KEY_PREFIX = "litehit."
_NAME = re.compile(rf"{FACTS_FOLDER}/([^/]+)/([^/]+)/(\d{{5}})/(\d{{20}})\.parquet")
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


@dataclass(frozen=True, slots=True, order=True)
class ChainKey:
    """What one chain of segments covers: a partition of one generation of a facts topic."""

    topic: str
    generation: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.generation}/{self.partition}"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What a segment's footer says of it.

    Attributes:
        chain: topic, generation and partition.
        base_offset: first offset it covers.
        end_offset: first offset it no longer covers; between facts and at the end lie offsets that hold none, such
            as transaction markers.
        rows: facts in it, at least 1.
        first_time_ns, last_time_ns: earliest and latest time of a fact, nanoseconds (facts need not be in order).
        gap_end: the offsets from the base to here are missing, since they expired before they were archived; None
            where nothing is.
    """

    chain: ChainKey
    base_offset: int
    end_offset: int
    rows: int
    first_time_ns: int
    last_time_ns: int
    gap_end: int | None = None

    @property
    def first_offset(self) -> int:
        """Where its facts begin: behind the gap, if there is one."""
        return self.base_offset if self.gap_end is None else self.gap_end

    @property
    def path(self) -> str:
        """Its name in the store, made of its place alone: so publishing it twice can't succeed."""
        return segment_path(self.chain, self.base_offset)

    def metadata(self) -> dict[str, str]:
        """The file metadata that `from_metadata` reads."""
        fields = {
            "format_version": FORMAT_VERSION,
            "topic": self.chain.topic,
            "generation": self.chain.generation,
            "partition": self.chain.partition,
            "base_offset": self.base_offset,
            "end_offset": self.end_offset,
            "rows": self.rows,
            "first_time_ns": self.first_time_ns,
            "last_time_ns": self.last_time_ns,
        }
        if self.gap_end is not None:
            fields["gap_end"] = self.gap_end
        return {f"{_KEY_PREFIX}{name}": str(value) for name, value in fields.items()}

    @classmethod
    def from_metadata(cls, path: str, metadata: dict[bytes, bytes] | None) -> SegmentInfo:
        """Read a footer's key-value metadata.

        Raises:
            SegmentError: a key is missing or no number, or the format version is another.
        """

        def text(name: str) -> str:
            value = (metadata or {}).get(f"{_KEY_PREFIX}{name}".encode())
            if value is None:
                raise SegmentError(path, f"no {_KEY_PREFIX}{name} in its metadata, so it is no segment of facts")
            return value.decode()

        def number(name: str) -> int:
            try:
                return int(text(name))
            except ValueError:
                raise SegmentError(path, f"{_KEY_PREFIX}{name} is {text(name)!r}, not an integer") from None

        if number("format_version") != FORMAT_VERSION:
            raise SegmentError(
                path,
                f"format version {number('format_version')}, but this program reads {FORMAT_VERSION}; "
                f"use the release that wrote it or a newer one",
            )
        return cls(
            ChainKey(text("topic"), text("generation"), number("partition")),
            number("base_offset"),
            number("end_offset"),
            number("rows"),
            number("first_time_ns"),
            number("last_time_ns"),
            number("gap_end") if f"{_KEY_PREFIX}gap_end".encode() in (metadata or {}) else None,
        )


def segment_path(chain: ChainKey, base_offset: int) -> str:
    """`facts/<facts topic>/<generation>/<partition, 5 digits>/<base offset, 20 digits>.parquet`."""
    return f"{FACTS_FOLDER}/{chain.topic}/{chain.generation}/{chain.partition:05d}/{base_offset:020d}.parquet"


def parse_path(path: str) -> tuple[ChainKey, int] | None:
    """Chain and base offset of a segment's name; None for any other file."""
    match = _NAME.fullmatch(path)
    if match is None:
        return None
    topic, generation, partition, base = match.groups()
    return ChainKey(topic, generation, int(partition)), int(base)


def describe(
    chain: ChainKey, base_offset: int, end_offset: int, table: pa.Table, gap_end: int | None = None
) -> SegmentInfo:
    """What the segment of these facts is called and holds; the table is of `FACT_SCHEMA`, with a row at least."""
    times = pc.min_max(table["timestamp_ns"]).as_py()
    return SegmentInfo(chain, base_offset, end_offset, table.num_rows, times["min"], times["max"], gap_end)


def encode(info: SegmentInfo, table: pa.Table) -> memoryview:
    """The file's bytes; the same facts give the same bytes."""
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
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        writer.add_key_value_metadata(info.metadata())
    return memoryview(sink.getvalue()).cast("B")


def read_info(store: Store, path: str) -> SegmentInfo:
    """A segment's footer, checked against its name and the schema.

    Raises:
        SegmentError: the file is damaged or is not the segment its name says.
        NotFound: no file has the name.
    """
    with open_segment(store, path) as (info, _):
        return info


def read_table(store: Store, path: str) -> tuple[SegmentInfo, pa.Table]:
    """A whole segment: what it is, and its facts as a table of `FACT_SCHEMA`. Errors are those of `read_info`."""
    with open_segment(store, path) as (info, source), damage(path):
        return info, pq.ParquetFile(source, page_checksum_verification=True).read(use_threads=False)


@contextmanager
def open_segment(store: Store, path: str) -> Iterator[tuple[SegmentInfo, pa.NativeFile]]:
    """A segment opened for reading, its footer checked. Errors are those of `read_info`."""
    with store.open(path) as source:
        info = inspect(path, source)
        if (info.chain, info.base_offset) != parse_path(path):
            raise SegmentError(path, f"its metadata says it is {info.path}; it was renamed, so move it back")
        yield info, source


def inspect(path: str, source: pa.NativeFile) -> SegmentInfo:
    """What the footer of an open file says, whatever the file is called.

    Raises:
        SegmentError: it is no segment's, or contradicts itself.
    """
    with damage(path):
        file = pq.ParquetFile(source)
        info = SegmentInfo.from_metadata(path, file.metadata.metadata)
        schema = file.schema_arrow
        if not schema.equals(FACT_SCHEMA):
            raise SegmentError(path, f"its columns are not those of facts: {', '.join(schema.names)}")
    if info.gap_end is not None and info.gap_end <= info.base_offset:
        raise SegmentError(path, f"its gap ends at offset {info.gap_end}, which is not behind its base")
    if not 0 < info.rows == file.metadata.num_rows <= info.end_offset - info.first_offset:
        raise SegmentError(
            path,
            f"{file.metadata.num_rows} rows, but its metadata says {info.rows} "
            f"in offsets {info.first_offset} to {info.end_offset}",
        )
    return info


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Turn pyarrow's complaints about a file's content into a SegmentError that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SegmentError(path, f"damaged: {str(error).splitlines()[0]}") from error
