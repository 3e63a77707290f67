"""Publishing dead letters again: each at most once, however often and for whichever reasons it is asked for.

The numbered steps are those of docs/GUARANTEES.md.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from schemas.dead_letter import Reason
from service.dead_letter_reader import DeadLetter
from service.errors import ReplayRefused
from service.lanes.at_least_once import AtLeastOnce
from service.lanes.committed import Position
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.membership import NoMember
from service.lanes.transaction import MicroBatch, Transaction
from service.records import OutputRecord, SourceRecord
from service.settings import Settings
from service.topic_reader import TopicReader

REPLAY_GROUP = "litehit-dead-letters-replay"
"""Its committed offsets say how far dead letters are published again."""

_BATCH_RECORDS = 500


@dataclass(frozen=True, slots=True)
class ReplayPosition:
    """How far a partition's dead letters are published again.

    Attributes:
        offset: all before it are.
        ahead: of these reasons, all before another, larger offset are.
    """

    offset: int
    ahead: Mapping[Reason, int] = field(default_factory=dict)

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> ReplayPosition:
        """What is committed; a negative offset is nothing."""
        ahead = json.loads(metadata) if metadata else {}
        return cls(max(0, offset), {reason: ahead[reason] for reason in Reason if reason in ahead})

    def of(self, reason: Reason) -> int:
        """How far those of a reason are."""
        return self.ahead.get(reason, self.offset)

    @property
    def farthest(self) -> int:
        """The largest offset of any reason."""
        return max([self.offset, *self.ahead.values()])

    def moved(self, reasons: Collection[Reason], offset: int) -> ReplayPosition:
        """All of these reasons before an offset are published again too."""
        places = {reason: max(self.of(reason), offset) if reason in reasons else self.of(reason) for reason in Reason}
        least = min(places.values())
        return ReplayPosition(least, {reason: place for reason, place in places.items() if place > least})

    def committed(self) -> Position:
        """As it is committed."""
        return Position(self.offset, json.dumps(self.ahead, separators=(",", ":")) if self.ahead else "")


@dataclass(slots=True)
class Replayed:
    """What a replay came to.

    Attributes:
        published: dead letters published again, by reason.
        cut: dead letters that are not, since their value was cut.
        foreign: records that no lane has written.
    """

    published: Counter[Reason] = field(default_factory=Counter)
    cut: int = 0
    foreign: int = 0


class DeadLetterReplay:
    """Publishes dead letters to the requests topic as they came: key, value, headers, time, on the same partition.

    Args:
        settings: topics and the processing guarantee.
        bootstrap: the broker's address.
        partitions: of the topics.

    Raises:
        ProducerFailed: the producer is of no use.
    """

    def __init__(self, settings: Settings, bootstrap: str, partitions: int) -> None:
        transactional_id = f"{REPLAY_GROUP}-{settings.dead_letters_topic}"
        self._settings = settings.model_copy(update={"transactional_id": transactional_id})
        self._bootstrap = bootstrap
        self._partitions = range(partitions)

    def run(self, reasons: Collection[Reason], *, dry: bool) -> Replayed:
        """Publish what was not published before.

        Args:
            reasons: only dead letters of these.
            dry: only count.

        Raises:
            ReplayRefused: the position lies behind the end of the topic.
            TopicUnreadable: the dead-letter topic can't be read.
            BatchAborted: a batch was not published; those before it were.
            ProducerFailed: another replay began, or the producer is of no more use.
        """
        replayed = Replayed()
        with (
            TopicReader(self._settings, self._bootstrap, self._settings.dead_letters_topic, REPLAY_GROUP) as reader,
            closing(self._transaction(reader)) as transaction,
        ):
            if not dry:
                # 1. Another replay that still runs is fenced, and what it left open is decided.
                transaction.open()
            for partition in self._partitions:
                for outputs, position in self._batches(reader, partition, reasons, replayed):
                    if not dry:
                        # 4. Together or, on a broker without transactions, one after the other.
                        transaction.commit(MicroBatch(outputs, reader.topic, {partition: position.committed()}))
        return replayed

    def _batches(
        self, reader: TopicReader, partition: int, reasons: Collection[Reason], replayed: Replayed
    ) -> Iterator[tuple[list[OutputRecord], ReplayPosition]]:
        # 2. How far the dead letters are published again; then up to where they go now.
        position = ReplayPosition.read(*reader.committed(partition))
        bounds = reader.bounds(partition)
        if position.farthest > bounds.stable:
            raise ReplayRefused(reader.topic, partition, position.farthest, bounds.stable, REPLAY_GROUP)
        start = max(bounds.low, min(map(position.of, reasons)))
        with closing(reader.records(partition, start, bounds.stable)) as records:
            while batch := list(itertools.islice(records, _BATCH_RECORDS)):
                # 3. Of these reasons, whole, and not published before.
                outputs = list(self._outputs(batch, position, reasons, replayed))
                position = position.moved(reasons, batch[-1].offset + 1)
                yield outputs, position

    def _outputs(
        self, batch: Iterable[SourceRecord], position: ReplayPosition, reasons: Collection[Reason], replayed: Replayed
    ) -> Iterator[OutputRecord]:
        for record in batch:
            letter = DeadLetter.read(record)
            if letter is None:
                replayed.foreign += 1
            elif letter.said.reason not in reasons or record.offset < position.of(letter.said.reason):
                continue
            elif letter.said.truncated is not None:
                replayed.cut += 1
            else:
                replayed.published[letter.said.reason] += 1
                yield OutputRecord(
                    self._settings.requests_topic,
                    record.partition,
                    record.key,
                    record.value,
                    letter.headers,
                    record.timestamp_ms or 0,
                )

    def _transaction(self, reader: TopicReader) -> Transaction:
        if self._settings.at_least_once:
            return AtLeastOnce(self._settings, self._bootstrap, reader.client, lambda: False)
        return ExactlyOnce(self._settings, self._bootstrap, NoMember(reader.client), lambda: False)
