"""A batch is handed over in a thread; how that ended is told once, to whoever settles."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import cast

import pytest

from service.errors import BatchAborted, ProducerFailed
from service.lanes.committed import Position, RequestsTopic
from service.lanes.counts import LaneCounts
from service.lanes.handover import Handover, ProcessedBatch, Settled, Share
from service.lanes.lane import Lane, LaneOutput
from service.lanes.rendering import Computed
from service.lanes.transaction import MicroBatch, Transaction
from service.records import OutputRecord, SourceRecord, SourceRecords

TOPIC = RequestsTopic("requests", "generation", 4)


def share_of(partition: int, parts: Sequence[Computed] = ()) -> Share:
    sources = SourceRecords.of([SourceRecord("requests", partition, 7, None, None, 1)])
    letter = OutputRecord("letters", partition, None, b"bad", (), 1)
    output = LaneOutput("facts", sources, parts, (letter,), LaneCounts())
    return Share(cast("Lane", None), output, Position.of(8, TOPIC, 0))


def unrenderable(partition: int) -> Share:
    return share_of(partition, [cast("Computed", None)])


BATCH, NEXT = (ProcessedBatch("requests", {0: share_of(0)}, began) for began in (1.0, 2.0))


class Commits(Transaction):
    """A transaction that ends as it is told to, once it is told."""

    def __init__(self) -> None:
        self.ends: queue.Queue[Exception | None] = queue.Queue()
        self.batches: list[MicroBatch] = []
        self.threads: set[int] = set()
        self.asking: list[str] = []
        self.refusal: BatchAborted | None = None

    @property
    def topics(self) -> list[str]:
        return [batch.topic for batch in self.batches]

    def open(self) -> None:
        """Nothing is left over."""

    def prepare(self) -> None:
        self._ask("prepare")

    def finish(self, batch: MicroBatch) -> None:
        self._ask("finish")

    def _ask(self, name: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.asking.append(name)
        if self.refusal is not None:
            raise self.refusal

    def hand_over(self, batch: MicroBatch) -> None:
        self.threads.add(threading.get_ident())
        self.batches.append(batch)
        end = self.ends.get(timeout=60)
        if end is not None:
            raise end

    def close(self) -> None:
        """It holds nothing."""


def test_a_batch_is_under_way_until_it_is_settled_and_told_once() -> None:
    commits = Commits()
    handover = Handover(commits)
    assert handover.settle() is None
    aborted = BatchAborted("refused")
    for batch, end in ((BATCH, None), (NEXT, aborted)):
        handover.begin(batch)
        with pytest.raises(AssertionError, match="while another was"):
            handover.begin(NEXT)
        commits.ends.put(end)
        assert handover.settle() == Settled(batch, end)
        assert handover.settle() is None
    handover.close()
    assert commits.topics == ["requests", "requests"]
    assert threading.get_ident() not in commits.threads
    assert commits.asking == ["prepare", "finish", "prepare"]


def test_what_the_consumer_refuses_aborts_the_batch() -> None:
    """Before anything is handed over, or after all was: it is told where the batch is settled."""
    commits = Commits()
    handover = Handover(commits)
    commits.refusal = BatchAborted("expelled")
    handover.begin(BATCH)
    assert handover.settle() == Settled(BATCH, commits.refusal)
    assert commits.topics == []
    commits.refusal = None
    handover.begin(NEXT)
    commits.refusal = BatchAborted("rebalanced")
    commits.ends.put(None)
    assert handover.settle() == Settled(NEXT, commits.refusal)
    handover.close()


def test_what_ends_the_process_is_raised_where_it_is_settled() -> None:
    commits = Commits()
    handover = Handover(commits)
    handover.begin(BATCH)
    commits.ends.put(ProducerFailed("fenced"))
    with pytest.raises(ProducerFailed, match="fenced"):
        handover.settle()
    handover.close()


def test_closing_waits_for_what_is_under_way() -> None:
    commits = Commits()
    handover = Handover(commits)
    handover.begin(BATCH)
    commits.ends.put(None)
    handover.close()
    assert commits.ends.empty()
    assert handover.settle() is None


def test_of_a_share_that_can_not_be_rendered_nothing_is_handed_over() -> None:
    commits = Commits()
    handover = Handover(commits)
    handover.begin(ProcessedBatch("requests", {1: share_of(1), 2: unrenderable(2), 3: share_of(3)}, 1.0))
    commits.ends.put(None)
    settled = handover.settle()
    assert settled is not None
    assert settled.aborted is None
    assert {partition: str(failed) for partition, failed in settled.failed.items()} == {
        2: "AttributeError at or after requests/2/7: 'NoneType' object has no attribute 'facts'"
    }
    (batch,) = commits.batches
    assert [record.partition for record in batch.outputs] == list(batch.positions) == [1, 3]

    handover.begin(ProcessedBatch("requests", {2: unrenderable(2)}, 1.0))
    settled = handover.settle()
    assert settled is not None
    assert settled.failed.keys() == {2}
    handover.close()
    assert len(commits.batches) == 1
    assert commits.asking == ["prepare", "finish", "prepare"]
