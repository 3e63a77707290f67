"""Cutting what one poll brought into micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from litehit.curves import Int64Array
from service.records import SourceRecords


def cut_batches(records: Mapping[int, SourceRecords], max_bytes: int) -> Iterator[dict[int, SourceRecords]]:
    """Batches by partition whose keys and values have at most so many bytes; a larger record is a batch by itself."""
    batch: dict[int, SourceRecords] = {}
    left = max_bytes
    for partition, ordered in records.items():
        ends = np.cumsum(_sizes(ordered))
        first = taken = 0
        while first < len(ordered):
            end = int(np.searchsorted(ends, taken + left, side="right"))
            if end == first and not batch:
                end += 1
            if end > first:
                batch[partition] = ordered[first:end]
                left -= int(ends[end - 1]) - taken
                first, taken = end, int(ends[end - 1])
            if first < len(ordered):
                yield batch
                batch, left = {}, max_bytes
    if batch:
        yield batch


def _sizes(records: SourceRecords) -> Int64Array:
    """Bytes of each one's key and value."""
    keys = [len(key) if key is not None else 0 for key in records.keys]
    values = [len(value) if value is not None else 0 for value in records.values]
    return np.array(keys, np.int64) + np.array(values, np.int64)
