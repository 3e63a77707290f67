"""Reading ahead: what a poll brought is read in the background, while the poll before is processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from service.formats import TopicFormats
from service.formats.contents import Contexts
from service.lanes.batches import cut_batches
from service.lanes.lane import Lane
from service.lanes.read_records import ReadRecords
from service.lanes.reading import read_records
from service.lanes.requests_consumer import Polled
from service.lanes.topic_guard import TopicGuard
from service.messages import source_records
from service.records import SourceRecord, SourceRecords


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Reading some records failed: a fault of ours, never a dead letter.

    Attributes:
        first: the first of the records.
        error: what was raised.
    """

    first: SourceRecord
    error: Exception


ReadBatch: TypeAlias = Mapping[int, ReadRecords | ReadFailure]
"""A micro-batch by partition."""


@dataclass(frozen=True, slots=True)
class ReadPoll:
    """What one poll brought, read.

    Attributes:
        lanes: those that the records were polled for, by partition. A partition's records are for this very lane: one
            that took its place meanwhile is given them again.
        fault: why none of it may be processed; None where it may.
        batches: the records, in micro-batches.
        ends, gone: as in `Polled`.
    """

    lanes: Mapping[int, Lane]
    fault: str | None
    batches: Sequence[ReadBatch]
    ends: Mapping[int, int]
    gone: Sequence[int]


class ReadAhead:
    """A thread that reads records, which needs nothing of what was processed before.

    Args:
        guard: asked, after each poll that brought something, whether it may be processed.
        topic_formats: how a record is read.
        batch_bytes: keys and values of a micro-batch.
    """

    def __init__(self, guard: TopicGuard, topic_formats: TopicFormats, batch_bytes: int) -> None:
        self._guard = guard
        self._formats = topic_formats
        self._batch_bytes = batch_bytes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")

    def warm_up(self) -> None:
        """Compile what records are read with, or load it from the cache: seconds that no request should wait."""
        self._formats.usual.parse_many([b"{}"], Contexts.of_lines(None, [0]))

    def begin(self, polled: Polled, lanes: Mapping[int, Lane]) -> Future[ReadPoll]:
        """Begin to read what a poll brought for some lanes; what it brought for others is dropped."""
        return self._thread.submit(self._read, polled, lanes)

    def close(self) -> None:
        """End the thread; what it has not begun with is dropped."""
        self._thread.shutdown(cancel_futures=True)

    def _read(self, polled: Polled, lanes: Mapping[int, Lane]) -> ReadPoll:
        fault = self._guard.fault() if polled.messages or polled.gone else None
        batches: list[ReadBatch] = []
        if fault is None:
            polled_records = source_records(polled.messages)
            mine = {partition: records for partition, records in polled_records.items() if partition in lanes}
            batches = [
                {partition: self._read_some(records) for partition, records in batch.items()}
                for batch in cut_batches(mine, self._batch_bytes)
            ]
        return ReadPoll(lanes, fault, batches, polled.ends, polled.gone)

    def _read_some(self, records: SourceRecords) -> ReadRecords | ReadFailure:
        try:
            return read_records(self._formats, records)
        except Exception as error:
            return ReadFailure(records[0], error)
