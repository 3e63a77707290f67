"""What the group commits for a partition: an offset, and what it means something within."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class RequestsTopic:
    """The requests topic as it is now.

    Attributes:
        name: of the topic.
        generation: its id; offsets mean something only within one.
        partitions: its number of them, which decides where an instance's requests are.
    """

    name: str
    generation: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Position:
    """What a lane commits.

    Attributes:
        offset: the next offset to process.
        metadata: `<generation>:<partitions>:<history>`.
    """

    offset: int
    metadata: str

    @classmethod
    def of(cls, offset: int, topic: RequestsTopic, history: int) -> Self:
        """A position in a topic; see `Committed.history`."""
        return cls(offset, f"{topic.generation}:{topic.partitions}:{history}")


@dataclass(frozen=True, slots=True)
class Committed:
    """What the group has committed.

    Attributes:
        offset: the next offset to process; None where nothing was ever committed.
        generation, partitions: of the requests topic then; None where the commit does not say, as one that was made
            by other tools.
        history: 0 where the lane's caches go back to the start of the log, one more after each reset; None where the
            commit does not say.
    """

    offset: int | None
    generation: str | None = None
    partitions: int | None = None
    history: int | None = None

    @classmethod
    def read(cls, offset: int, metadata: str | None) -> Self:
        """What Kafka answers; a negative offset is none. Metadata of other makes says nothing."""
        if offset < 0:
            return cls(None)
        generation, *numbers = (metadata or "").split(":")
        if len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
            return cls(offset)
        return cls(offset, generation, int(numbers[0]), int(numbers[1]))
