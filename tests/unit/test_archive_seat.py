"""What becomes of a partition's errors: ever longer pauses for the store's, an end for others, gaps if accepted."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from service.archive.catalog import Catalog
from service.archive.chain_end import Held
from service.archive.errors import OffsetsMissing
from service.archive.listener import FactListeners
from service.archive.partition import PartitionArchive
from service.archive.seat import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Seat
from service.archive.segment import ChainKey
from service.archive.tail import SegmentLimits
from service.metrics import ArchiveMetrics
from tests.archive_facts import fetched
from tests.archiver_stores import LeapingClock, RefusingStore
from tests.inline_executor import InlineExecutor

KEY = ChainKey("facts", "g", 0)


class Bench:
    def __init__(self) -> None:
        self.store = RefusingStore("memory://")
        self.clock = LeapingClock()
        metrics = ArchiveMetrics(CollectorRegistry())
        limits = SegmentLimits(4, 10**9, 60.0)
        archive = PartitionArchive(
            KEY, 0, limits, Catalog(self.store), FactListeners(), metrics, InlineExecutor(), self.clock
        )
        self.seat = Seat(archive, metrics, self.clock)

    def tries(self) -> bool:
        """Whether serving now asks the store."""
        self.store.refuse()
        self.seat.serve(None, None)
        return self.store.refused.is_set()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_pauses_grow_up_to_a_limit_and_begin_anew_after_success(bench: Bench) -> None:
    bench.store.refuse()
    bench.seat.serve(fetched(range(10)), None)
    assert "No space left" in str(bench.seat.trouble)
    assert bench.seat.wants is None, "nothing is read meanwhile, so memory is bounded"
    for pause in (1, 2, 4, 8, 16, 30, 30):
        assert FIRST_PAUSE_SECONDS <= pause <= LONGEST_PAUSE_SECONDS
        bench.clock.leap(pause - 0.01)
        assert not bench.tries()
        bench.clock.leap(0.01)
        assert bench.tries()
    bench.store.allow()
    bench.clock.leap(LONGEST_PAUSE_SECONDS)
    bench.seat.serve(None, None)
    assert bench.seat.status(None).trouble is None
    assert bench.seat.wants == 4
    bench.store.refuse()
    bench.seat.serve(fetched(range(4, 8)), None)
    bench.clock.leap(FIRST_PAUSE_SECONDS)
    assert bench.tries()


def test_a_partition_goes_on_where_the_topic_holds_its_next_offset(bench: Bench) -> None:
    bench.seat.serve(fetched(range(3)), None)
    for held in (Held(0, 3), Held(3, 3), Held(2, 99)):
        bench.seat.check(held, accept_gap=False)
        assert bench.seat.wants == 3


def test_what_was_consumed_before_a_gap_is_published_whether_it_is_accepted_or_not(bench: Bench) -> None:
    bench.seat.serve(fetched(range(3)), None)
    bench.seat.check(Held(7, 9), accept_gap=False)
    assert isinstance(bench.seat.error, OffsetsMissing)
    assert "4 offsets missing" in str(bench.seat.error)
    assert "restore the segments" in str(bench.seat.error)
    assert "--accept-gap" in str(bench.seat.error)
    assert (bench.seat.archive.published_end, bench.seat.wants) == (3, None)

    accepting = Bench()
    accepting.seat.serve(fetched(range(3)), None)
    accepting.seat.check(Held(7, 9), accept_gap=True)
    assert (accepting.seat.archive.published_end, accepting.seat.wants) == (3, 7)


def test_a_topic_that_ends_too_early_is_no_gap(bench: Bench) -> None:
    bench.seat.serve(fetched(range(3)), None)
    bench.seat.check(Held(0, 2), accept_gap=True)
    assert "the topic ends at offset 2, 1 offset earlier" in str(bench.seat.error)


def test_a_gap_waits_for_a_store_that_refuses(bench: Bench) -> None:
    bench.seat.serve(fetched(range(3)), None)
    bench.store.refuse()
    bench.seat.check(Held(7, 9), accept_gap=True)
    assert bench.seat.trouble is not None
    assert bench.tries() is False, "the pause is kept"
    bench.store.allow()
    bench.clock.leap(FIRST_PAUSE_SECONDS)
    bench.seat.serve(None, None)
    assert bench.seat.status(None).trouble is None
    assert (bench.seat.archive.published_end, bench.seat.wants) == (3, 3)
    bench.seat.check(Held(7, 9), accept_gap=True)
    assert bench.seat.wants == 7
