"""A batch is handed over in a thread; how that ended is told once, to whoever settles."""

from __future__ import annotations

import queue
import threading

import pytest

from service.errors import BatchAborted, ProducerFailed
from service.lanes.handover import Handover, ProcessedBatch, Settled
from service.lanes.transaction import MicroBatch

BATCH, NEXT = ProcessedBatch("requests", {}), ProcessedBatch("requests", {})


class Commits:
    """A transaction that ends as it is told to, once it is told."""

    def __init__(self) -> None:
        self.ends: queue.Queue[Exception | None] = queue.Queue()
        self.topics: list[str] = []
        self.threads: set[int] = set()

    def open(self) -> None:
        """Nothing is left over."""

    def commit(self, batch: MicroBatch) -> None:
        self.threads.add(threading.get_ident())
        self.topics.append(batch.topic)
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
