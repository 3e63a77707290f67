"""Cutting what one poll brought into micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.records import SourceRecord


def cut_batches(
    records: Mapping[int, Sequence[SourceRecord]], max_bytes: int
) -> Iterator[dict[int, list[SourceRecord]]]:
    """Batches by partition whose keys and values have at most so many bytes; a larger record is a batch by itself."""
    batch: dict[int, list[SourceRecord]] = {}
    size = 0
    for partition, ordered in records.items():
        for record in ordered:
            own = len(record.key or b"") + len(record.value or b"")
            if batch and size + own > max_bytes:
                yield batch
                batch, size = {}, 0
            batch.setdefault(partition, []).append(record)
            size += own
    if batch:
        yield batch
