"""Handing over a micro-batch: its output and its consumed offsets. The port that lane workers use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import TopicPartition

from service.lanes.committed import Position
from service.records import OutputRecord


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What is handed over at once.

    Attributes:
        outputs: facts and dead letters, each on the partition of the request it comes from.
        topic: name of the requests topic.
        positions: what is committed, by requests partition.
    """

    outputs: Sequence[OutputRecord]
    topic: str
    positions: Mapping[int, Position]

    def offsets(self) -> list[TopicPartition]:
        """The positions as Kafka commits them."""
        return [
            TopicPartition(self.topic, partition, position.offset, position.metadata)
            for partition, position in self.positions.items()
        ]


class Transaction(Protocol):
    """A way to hand over micro-batches, one at a time: `prepare`, `hand_over`, `finish`.

    A consumer answers nobody while it polls, its callbacks included, so whatever asks it is in the first and the last,
    which are called by the thread that polls. The long part, between them, needs no consumer: any thread may do it.
    """

    def open(self) -> None:
        """Make ready, once, before partitions are assigned.

        Raises:
            ProducerFailed: this process can hand over nothing.
        """

    def prepare(self) -> None:
        """Ask the consumer what the next batch needs.

        Raises:
            BatchAborted: nothing may be handed over now.
        """

    def hand_over(self, batch: MicroBatch) -> None:
        """Hand over a batch.

        Raises:
            BatchAborted: the batch, or a part of it, was not handed over.
            ProducerFailed: this process can hand over nothing any more.
        """

    def finish(self, batch: MicroBatch) -> None:
        """Tell the consumer of the batch; when this returns, all of it is in Kafka. Errors are those of `hand_over`."""

    def commit(self, batch: MicroBatch) -> None:
        """All three, for a program that does nothing beside. Errors are those of `hand_over`."""
        self.prepare()
        self.hand_over(batch)
        self.finish(batch)

    def close(self) -> None:
        """Give up what is not handed over."""
