"""Reading dead letters back: what the service says of a record, and the record itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from pydantic import ValidationError

from schemas.dead_letter import TRUNCATED_HEADER, DeadLetterHeaders
from service.records import Headers, SourceRecord
from service.topic_reader import TopicReader

_OWN_HEADERS = 3  # and a fourth where the value is cut


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not become a fact.

    Attributes:
        record: as it stands on the dead-letter topic; its key and value are the original's.
        said: what the service says of it.
        headers: the original headers.
    """

    record: SourceRecord
    said: DeadLetterHeaders
    headers: Headers

    @classmethod
    def read(cls, record: SourceRecord) -> DeadLetter | None:
        """Take a record of the dead-letter topic apart; None for one that no lane has written."""
        cut = [name for name, _ in record.headers[_OWN_HEADERS : _OWN_HEADERS + 1]] == [TRUNCATED_HEADER]
        own, original = record.headers[: _OWN_HEADERS + cut], record.headers[_OWN_HEADERS + cut :]
        said = {name: (value or b"").decode(errors="replace") for name, value in own}
        try:
            return cls(record, DeadLetterHeaders.model_validate(said), original)
        except ValidationError:
            return None


def read_dead_letters(reader: TopicReader, partitions: Iterable[int]) -> Iterator[DeadLetter | None]:
    """The dead letters of some partitions as far as they go now, one partition after another.

    None stands for a record that no lane has written.

    Raises:
        TopicUnreadable: the topic can't be read.
    """
    for partition in partitions:
        bounds = reader.bounds(partition)
        with closing(reader.records(partition, bounds.low, bounds.stable)) as records:
            yield from map(DeadLetter.read, records)
