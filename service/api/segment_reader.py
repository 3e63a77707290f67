"""Reads of segments' files what sums need: their row groups, and chosen ones of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow.parquet as pq

from litehit.request import MAX_INPUT_TOKENS
from service.api.pages import RowGroups
from service.api.rows import FactRows
from service.archive.errors import SegmentError
from service.archive.segment import SegmentInfo, damage, inspect
from service.archive.store import Store

CHUNK_ROWS = 262_144
"""Rows that are read at once, where they lie in several row groups."""

_COLUMNS = ["instance_id", "timestamp_ns", "input_token_len", "block_size_tokens", "block_bytes", "hit_curve"]
_TIME = "timestamp_ns"
_FOOTERS = 128  # kept: parsing one takes as long as reading a row group


class SegmentReader(Protocol):
    """Reads the facts of published segments.

    Both calls raise ArchiveError where the file is gone, damaged or another segment's by now.
    """

    def row_groups(self, info: SegmentInfo) -> RowGroups:
        """What the file of a segment is made of."""

    def read(self, info: SegmentInfo, places: Sequence[int]) -> Iterator[FactRows]:
        """The facts of the row groups at these places, in batches."""


class ParquetReader:
    """Reads from a store. Its methods may be called from any thread.

    Args:
        store: where the segments are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._footers: OrderedDict[SegmentInfo, tuple[bytes, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def row_groups(self, info: SegmentInfo) -> RowGroups:
        """See `SegmentReader.row_groups`."""
        with self._store.open(info.path) as source, damage(info.path):
            footer = self._check(info, source)
            column = footer.schema.to_arrow_schema().get_field_index(_TIME)
            groups = [footer.row_group(place) for place in range(footer.num_row_groups)]
            times = [group.column(column).statistics for group in groups]
            return RowGroups(
                np.array([group.num_rows for group in groups], np.int64),
                np.array([one.min for one in times], np.int64),
                np.array([one.max for one in times], np.int64),
            )

    def read(self, info: SegmentInfo, places: Sequence[int]) -> Iterator[FactRows]:
        """See `SegmentReader.read`."""
        with self._store.open(info.path) as source, damage(info.path):
            footer = self._check(info, source)
            file = pq.ParquetFile(
                source, metadata=footer, read_dictionary=["instance_id"], page_checksum_verification=True
            )
            waiting: list[int] = []
            rows = 0
            for place in places:
                waiting.append(place)
                rows += footer.row_group(place).num_rows
                if rows >= CHUNK_ROWS or place == places[-1]:
                    read = FactRows.from_table(file.read_row_groups(waiting, columns=_COLUMNS, use_threads=False))
                    _check_sizes(info, read)
                    yield read
                    waiting, rows = [], 0

    def _check(self, info: SegmentInfo, source: Any) -> Any:
        """The parsed footer of a segment's open file, if it still is that segment."""
        content = _footer(source)
        with self._lock:
            known, footer = self._footers.get(info, (b"", None))
        if known == content:
            return footer
        if inspect(info.path, source) != info:
            raise SegmentError(info.path, "it was replaced since the store was listed; list the store again")
        footer = pq.ParquetFile(source).metadata
        with self._lock:
            self._footers[info] = content, footer
            self._footers.move_to_end(info)
            while len(self._footers) > _FOOTERS:
                self._footers.popitem(last=False)
        return footer


def _check_sizes(info: SegmentInfo, rows: FactRows) -> None:
    """Refuse numbers that no lane writes and that 64 bits may not sum.

    Raises:
        SegmentError: a fact has such a number.
    """
    for name, numbers in (("input_token_len", rows.input_token_lens), ("run_length", rows.hit_curves.runs)):
        least, most = numbers.min(initial=0), numbers.max(initial=0)
        if least < 0 or most > MAX_INPUT_TOKENS:
            raise SegmentError(
                info.path,
                f"a fact has {name} {least if least < 0 else most}, which no request has ({MAX_INPUT_TOKENS} at most); "
                f"another program wrote it: put the right file in its place, or take it away",
            )


def _footer(source: Any) -> bytes:
    """A Parquet file's footer as it stands: it ends with its length, 4 bytes, and 4 bytes of magic."""
    size = source.size()
    source.seek(max(0, size - 8))
    end = source.read(8)
    length = min(int.from_bytes(end[:4], "little") + 8, size)
    source.seek(size - length)
    content: bytes = source.read(length)
    return content
