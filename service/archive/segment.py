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
from service.archive.store import Data, Store

FACTS_FOLDER = "facts"
FORMAT_VERSION = 1

_KEY_PREFIX = "litehit."
_OPTIONAL = ("gap_end", "archived_ns", "expired_rows")
_NAME = re.compile(rf"{FACTS_FOLDER}/([^/]+)/([^/]+)/(\d{{5}})/(\d{{20}})\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class ChainKey:
    """What one chain of segments covers: a partition of one generation of a facts topic."""

    topic: str
    generation: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.generation}/{self.partition}"

    @property
    def folder(self) -> str:
        """Where its segments are, in the store."""
        return f"{FACTS_FOLDER}/{self.topic}/{self.generation}/{self.partition:05d}"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What a segment's footer says of it.

    Attributes:
        chain: topic, generation and partition.
        base_offset: first offset it covers.
        end_offset: first offset it no longer covers; between facts and at the end lie offsets that hold none, such
            as transaction markers.
        rows: facts in it, at least 1; 0 where they were removed.
        first_time_ns, last_time_ns: earliest and latest time of a fact, nanoseconds (facts need not be in order); where
            they were removed, of those.
        gap_end: the offsets from the base to here are missing, since they expired before they were archived; None
            where nothing is.
        archived_ns: when the newest of the segments that were merged into it came into the store, nanoseconds since
            1970; None for one that was not merged, whose file's own time says it.
        expired_rows: so many facts stood in these offsets and were removed by retention; None where none were.
    """

    chain: ChainKey
    base_offset: int
    end_offset: int
    rows: int
    first_time_ns: int
    last_time_ns: int
    gap_end: int | None = None
    archived_ns: int | None = None
    expired_rows: int | None = None

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
        fields |= {name: value for name in _OPTIONAL if (value := getattr(self, name)) is not None}
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
            **{name: number(name) for name in _OPTIONAL if f"{_KEY_PREFIX}{name}".encode() in (metadata or {})},
        )


def segment_path(chain: ChainKey, base_offset: int) -> str:
    """`facts/<facts topic>/<generation>/<partition, 5 digits>/<base offset, 20 digits>.parquet`."""
    return f"{chain.folder}/{base_offset:020d}.parquet"


def parse_path(path: str) -> tuple[ChainKey, int] | None:
    """Chain and base offset of a segment's name; None for any other file."""
    match = _NAME.fullmatch(path)
    if match is None:
        return None
    topic, generation, partition, base = match.groups()
    return ChainKey(topic, generation, int(partition)), int(base)


def describe(
    chain: ChainKey,
    base_offset: int,
    end_offset: int,
    table: pa.Table,
    gap_end: int | None = None,
    archived_ns: int | None = None,
) -> SegmentInfo:
    """What the segment of these facts is called and holds; the table is of `FACT_SCHEMA`, with a row at least."""
    times = pc.min_max(table["timestamp_ns"]).as_py()
    return SegmentInfo(chain, base_offset, end_offset, table.num_rows, times["min"], times["max"], gap_end, archived_ns)


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
    return decode_segment(path, store.read(path))


def decode_segment(path: str, data: Data) -> tuple[SegmentInfo, pa.Table]:
    """The same, of the file's bytes."""
    source = pa.BufferReader(data)
    info = _inspect_named(path, source)
    with damage(path):
        return info, pq.ParquetFile(source, page_checksum_verification=True).read(use_threads=False)


@contextmanager
def open_segment(store: Store, path: str) -> Iterator[tuple[SegmentInfo, pa.NativeFile]]:
    """A segment opened for reading, its footer checked. Errors are those of `read_info`."""
    with store.open(path) as source:
        yield _inspect_named(path, source), source


def _inspect_named(path: str, source: pa.NativeFile) -> SegmentInfo:
    info = inspect(path, source)
    if (info.chain, info.base_offset) != parse_path(path):
        raise SegmentError(path, f"its metadata says it is {info.path}; it was renamed, so move it back")
    return info


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
    facts = info.rows if info.expired_rows is None else info.expired_rows
    if (
        info.rows != file.metadata.num_rows
        or (info.rows and info.expired_rows is not None)
        or not 0 < facts <= info.end_offset - info.first_offset
    ):
        removed = "" if info.expired_rows is None else f" and {info.expired_rows} removed"
        raise SegmentError(
            path,
            f"{file.metadata.num_rows} rows, but its metadata says {info.rows}{removed} "
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
