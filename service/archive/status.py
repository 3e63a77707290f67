"""What an archiver says about itself: plain values for readiness, metrics and the API."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from service.archive.segment import ChainKey

_FOR_GOOD = 2**63


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One facts partition at one moment.

    Attributes:
        chain: which one.
        next_offset: everything before it is consumed.
        published_end: everything before it is in the store.
        tail_rows: facts consumed and not yet in the store.
        end_offset: the partition's last stable offset, as last heard; None before it is known.
        last_fact_time_ns: latest time of a fact consumed since the start, nanoseconds; None without any.
        trouble: why publishing fails and is tried again; None where it does not.
        error: why the partition stopped; None unless it did.
        end_known: whether the offsets say where its segments end: a partition that could not find out has stopped.
    """

    chain: ChainKey
    next_offset: int
    published_end: int
    tail_rows: int
    end_offset: int | None
    last_fact_time_ns: int | None
    trouble: str | None
    error: str | None
    end_known: bool = True

    @property
    def lag(self) -> int | None:
        """Offsets between the archiver and the last stable offset; None where one of them is not known."""
        return None if self.end_offset is None or not self.end_known else max(0, self.end_offset - self.next_offset)


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """All partitions of an archiver at one moment.

    Attributes:
        starting: what it waits for before it knows its partitions; None once it does.
        partitions: one a partition, in order; empty until then.
        heard_at: when Kafka last answered it, in monotonic seconds.
    """

    starting: str | None
    partitions: tuple[PartitionStatus, ...] = ()
    heard_at: float = field(default_factory=time.monotonic)

    def consumed(self, partitions: Iterable[int]) -> Mapping[int, int]:
        """The offset up to which facts are consumed, of those partitions that are known.

        With it a producer can hold back before a broker that keeps little forgets facts. A partition that stopped
        counts as consumed for good: waiting for it would have no end.
        """
        known = {one.chain.partition: one.next_offset if one.error is None else _FOR_GOOD for one in self.partitions}
        return {partition: known[partition] for partition in partitions if partition in known}

    @property
    def stopped(self) -> tuple[str, ...]:
        """What keeps it from being ready until someone sees to it, a sentence each."""
        return tuple(f"partition {one.chain.partition} stopped: {one.error}" for one in self.partitions if one.error)

    @property
    def waiting(self) -> tuple[str, ...]:
        """What else keeps it from being ready, a sentence each."""
        if self.starting is not None:
            return (self.starting,)
        return tuple(
            f"partition {one.chain.partition} can't publish and tries again: {one.trouble}"
            for one in self.partitions
            if one.trouble and not one.error
        )
