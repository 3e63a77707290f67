"""Records of a topic as plain values, so that nothing but the Kafka clients' own modules handles their messages.

A single one is a named tuple, which is made faster than a frozen dataclass. Where each microsecond of a record counts,
the records of a partition are held in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, overload

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class SourceRecord(NamedTuple):
    """A record that was consumed.

    Attributes:
        topic, partition, offset: where it stands.
        key, value: its bytes; None where the producer sent none (a null value is a tombstone).
        timestamp_ms: the record's timestamp in milliseconds; None where the record has none.
        headers: in the producer's order.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: Headers = ()

    @property
    def source(self) -> str:
        """`<topic>/<partition>/<offset>`: the value of the header `litehit-source`."""
        return f"{_source_start(self.topic, self.partition)}{self.offset}"


@dataclass(frozen=True, slots=True)
class SourceRecords(Sequence[SourceRecord]):
    """R records of one partition that were consumed, in columns.

    Attributes:
        topic, partition: where they stand.
        offsets, keys, values, timestamps_ms: R of each; see `SourceRecord`.
        headers: R of them; None where no record has any.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps_ms: Sequence[int | None]
    headers: Sequence[Headers] | None

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> SourceRecords:
        """Turn records of one partition, at least one, into columns.

        Raises:
            ValueError: they are of several.
        """
        topics, partitions, offsets, keys, values, timestamps_ms, headers = zip(*records, strict=True)
        if len({*topics}) > 1 or len({*partitions}) > 1:
            raise ValueError(f"records of several partitions: {sorted({*zip(topics, partitions, strict=True)})}")
        return cls(topics[0], partitions[0], offsets, keys, values, timestamps_ms, headers if any(headers) else None)

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> SourceRecord: ...

    @overload
    def __getitem__(self, index: slice) -> SourceRecords: ...

    def __getitem__(self, index: int | slice) -> SourceRecord | SourceRecords:
        of: Any = itemgetter(index)  # elements or parts, which a type checker can't tell from each other
        offsets, keys, values, times_ms = map(of, (self.offsets, self.keys, self.values, self.timestamps_ms))
        headers = None if self.headers is None else of(self.headers)
        if isinstance(index, slice):
            return SourceRecords(self.topic, self.partition, offsets, keys, values, times_ms, headers)
        return SourceRecord(self.topic, self.partition, offsets, keys, values, times_ms, headers or ())

    def places(self) -> SourceRecords:
        """The same without what stands in them, which may be megabytes."""
        nothing = (None,) * len(self)
        return replace(self, keys=nothing, values=nothing, headers=None)

    @property
    def source_start(self) -> str:
        """What each one's `source` begins with; its offset follows."""
        return _source_start(self.topic, self.partition)


def _source_start(topic: str, partition: int) -> str:
    return f"{topic}/{partition}/"


class OutputRecord(NamedTuple):
    """A record to be produced, to a fixed partition."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
