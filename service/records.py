"""Records of a topic as plain values, so that nothing but the Kafka clients' own modules handles their messages.

They are named tuples, since a frozen dataclass takes several times as long to make, and every record is one of each.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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
        return f"{self.topic}/{self.partition}/{self.offset}"


class OutputRecord(NamedTuple):
    """A record to be produced, to a fixed partition."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
