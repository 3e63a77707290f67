from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from service.archive.archived_facts import FACT_SCHEMA, ArchivedFacts
from service.archive.catalog import Catalog
from service.archive.chain import Chain, Gap
from service.archive.chain_end import Held, find_end
from service.archive.decode import FetchedFacts
from service.archive.errors import ArchiveDisagrees, ChainBroken, SegmentError, StoreError, UndecodableFact
from service.archive.open_store import open_store
from service.archive.partition import PartitionArchive
from service.archive.segment import ChainKey, SegmentInfo, describe, read_table
from service.archive.segment_writer import encode
from service.archive.store import Store
from service.archive.tail import SegmentLimits
from service.metrics import ArchiveMetrics
from tests.archive_facts import START_NS, fetched, made_fact, made_facts
from tests.inline_executor import HeldExecutor, InlineExecutor

CHAIN = ChainKey("facts", "g", 0)


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Listener:
    """Keeps what it hears as an index would."""

    def __init__(self) -> None:
        self.segments: list[SegmentInfo] = []
        self.tail: list[int] = []

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        assert chain == CHAIN
        self.tail += rows.fact_offsets.tolist()

    def published(self, info: SegmentInfo) -> None:
        self.segments.append(info)
        self.tail = [offset for offset in self.tail if offset >= info.end_offset]

    def tail_dropped(self, chain: ChainKey) -> None:
        assert chain == CHAIN
        self.tail = []


class Bench:
    """A partition with all that it needs, on one store with others."""

    def __init__(
        self,
        store: Store,
        rows: int = 1000,
        size_bytes: int = 10**9,
        seconds: float = 60.0,
        writer: Executor | None = None,
    ) -> None:
        catalog = Catalog(store)
        catalog.refresh()
        self.store = store
        self.clock = FakeClock()
        self.listener = Listener()
        self.registry = CollectorRegistry()
        self.writer = InlineExecutor() if writer is None else writer
        self.archive = PartitionArchive(
            CHAIN,
            catalog.next_offset(CHAIN),
            SegmentLimits(rows, size_bytes, seconds),
            catalog,
            self.listener,
            ArchiveMetrics(self.registry),
            self.writer,
            self.clock,
        )

    def count(self, name: str) -> float:
        return self.registry.get_sample_value(f"litehit_archive_{name}_total", {"partition": "0"}) or 0.0


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def merge(store: Store, base: int, end: int) -> SegmentInfo:
    """Merge the segments from a base to an end, as a compaction does."""
    catalog = Catalog(store)
    catalog.refresh()
    parts = [info for info in catalog.view.segments if base <= info.base_offset < end]
    table = pa.concat_tables([read_table(store, info.path)[1] for info in parts])
    whole = describe(CHAIN, base, end, table, parts[0].gap_end, archived_ns=1)
    first = catalog.file(whole.path)
    assert first is not None
    store.replace(whole.path, encode(whole, table), first.version)
    for info in parts[1:]:
        store.delete(info.path)
    return whole


def chain_of(store: Store) -> Chain:
    catalog = Catalog(store)
    catalog.refresh()
    return catalog.view.chain(CHAIN)


def archived(store: Store) -> list[int]:
    """The offsets in the store, which must be one chain of the right facts."""
    catalog = Catalog(store)
    catalog.refresh()
    assert catalog.view.faults == ()
    offsets: list[int] = []
    for info in catalog.view.segments:
        facts = ArchivedFacts.from_table(read_table(store, info.path)[1])
        assert list(facts.facts) == [made_fact(offset) for offset in facts.fact_offsets.tolist()]
        assert facts.source_offsets.tolist() == [2 * offset for offset in facts.fact_offsets.tolist()]
        offsets += facts.fact_offsets.tolist()
    return offsets


def ends(bench: Bench) -> list[int]:
    return [info.end_offset for info in bench.listener.segments]


def test_facts_are_heard_at_once_and_published_later(store: Store) -> None:
    bench = Bench(store)
    bench.archive.consume(fetched(range(5)))
    assert bench.listener.tail == [0, 1, 2, 3, 4]
    assert archived(store) == []
    assert (bench.archive.next_offset, bench.archive.published_end) == (5, 0)
    assert bench.archive.last_fact_time_ns == START_NS + 4 * 10**9
    bench.archive.publish()
    assert bench.listener.tail == []
    assert archived(store) == [0, 1, 2, 3, 4]
    assert (bench.archive.next_offset, bench.archive.published_end) == (5, 5)
    bench.archive.publish()
    assert ends(bench) == [5], "nothing open, nothing published"


def test_a_segment_has_no_more_rows_than_its_limit(store: Store) -> None:
    bench = Bench(store, rows=4)
    bench.archive.consume(fetched(range(3)))
    assert ends(bench) == []
    bench.archive.consume(fetched(range(3, 13)))
    assert ends(bench) == [4, 8, 12]
    assert bench.listener.tail == [12]
    bench.archive.publish()
    assert archived(store) == list(range(13))


def test_a_segment_ends_with_the_fact_that_reaches_its_limit_of_bytes(store: Store) -> None:
    sizes = [len(made_fact(offset).to_json()) for offset in range(6)]
    bench = Bench(store, size_bytes=sum(sizes[:3]) - 1)
    bench.archive.consume(fetched(range(2)))
    assert ends(bench) == []
    bench.archive.consume(fetched(range(2, 6)))
    assert ends(bench)[0] == 3
    bench.archive.publish()
    assert archived(store) == list(range(6))


def test_how_facts_are_fetched_does_not_matter(store: Store) -> None:
    once, piecewise = Bench(store, rows=7, size_bytes=1500), Bench(open_store("memory://"), rows=7, size_bytes=1500)
    once.archive.consume(fetched(range(100)))
    for offset in range(100):
        piecewise.archive.consume(fetched([offset]))
    assert once.listener.segments == piecewise.listener.segments
    for info in once.listener.segments:
        assert once.store.read(info.path) == piecewise.store.read(info.path)


def test_age_counts_from_the_first_fact_of_the_tail(store: Store) -> None:
    bench = Bench(store, seconds=60.0)
    bench.clock.now += 500
    bench.archive.publish_if_due()
    bench.archive.consume(fetched(range(2)))
    bench.clock.now += 59
    bench.archive.consume(fetched(range(2, 3)))
    bench.archive.publish_if_due()
    assert ends(bench) == []
    bench.clock.now += 1
    bench.archive.publish_if_due()
    assert ends(bench) == [3]
    bench.clock.now += 500
    bench.archive.publish_if_due()
    assert ends(bench) == [3]


def test_offsets_without_facts_belong_to_the_segment(store: Store) -> None:
    bench = Bench(store)
    bench.archive.reached(2)
    assert bench.archive.next_offset == 2
    bench.archive.consume(fetched([3, 7]))
    bench.archive.reached(10)
    bench.archive.reached(9)
    bench.archive.publish()
    (info,) = bench.listener.segments
    assert (info.base_offset, info.end_offset, info.rows) == (0, 10, 2)
    bench.archive.consume(fetched([10, 12]))
    bench.archive.publish()
    assert [(one.base_offset, one.end_offset) for one in bench.listener.segments] == [(0, 10), (10, 13)]
    assert archived(store) == [3, 7, 10, 12]


def test_a_record_is_taken_once(store: Store) -> None:
    bench = Bench(store)
    bench.archive.consume(fetched(range(5)))
    bench.archive.consume(fetched(range(8)))
    assert bench.listener.tail == list(range(8))
    assert bench.count("facts") == 8


def test_a_restart_goes_on_from_the_last_segments_end(store: Store) -> None:
    first = Bench(store)
    first.archive.consume(fetched(range(5)))
    first.archive.publish()
    first.archive.consume(fetched(range(5, 9)))  # lost with the process
    second = Bench(store)
    assert second.archive.next_offset == 5
    second.archive.consume(fetched(range(3, 12)))
    second.archive.publish()
    assert archived(store) == list(range(12))


@pytest.mark.parametrize("winner_end", [2, 5, 8])
def test_the_loser_goes_on_from_the_winners_end(store: Store, winner_end: int) -> None:
    winner, loser = Bench(store), Bench(store)
    loser.archive.consume(fetched(range(5)))
    winner.archive.consume(fetched(range(winner_end)))
    winner.archive.publish()
    loser.archive.publish()
    assert loser.count("lost_races") == 1
    assert loser.listener.segments[0] == winner.listener.segments[0]
    assert loser.archive.next_offset == max(5, winner_end)
    assert archived(store) == list(range(max(5, winner_end)))
    loser.archive.consume(fetched(range(10)))
    loser.archive.publish()
    assert archived(store) == list(range(10))


def test_several_segments_of_the_winner_are_passed(store: Store) -> None:
    winner, loser = Bench(store, rows=3), Bench(store)
    winner.archive.consume(fetched(range(9)))
    loser.archive.consume(fetched(range(11)))
    loser.archive.publish()
    assert ends(loser) == [3, 6, 9, 11]
    assert archived(store) == list(range(11))


def test_two_archivers_in_turns_give_one_chain(store: Store) -> None:
    one, other = Bench(store, rows=5), Bench(store, rows=7)
    for start in range(0, 60, 4):
        one.archive.consume(fetched(range(start, start + 4)))
        other.archive.consume(fetched(range(max(0, start - 3), start + 1)))
    one.archive.publish()
    other.archive.publish()
    assert archived(store) == list(range(60))
    assert one.count("lost_races") + other.count("lost_races") > 0


def test_a_write_whose_answer_was_lost_is_recognised(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store)
    bench.archive.consume(fetched(range(5)))
    create = store.create

    def create_and_fail(path: str, data: Any) -> None:
        create(path, data)
        raise StoreError("connection reset")

    monkeypatch.setattr(store, "create", create_and_fail)
    with pytest.raises(StoreError):
        bench.archive.publish()
    assert bench.listener.tail == list(range(5))
    monkeypatch.undo()
    bench.archive.publish()
    assert archived(store) == list(range(5))
    assert ends(bench) == [5]


def test_a_full_tail_takes_nothing_until_it_is_published(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store, rows=3)

    def fail(path: str, data: Any) -> None:
        raise StoreError("No space left on device")

    monkeypatch.setattr(store, "create", fail)
    for _ in range(3):
        with pytest.raises(StoreError, match="No space"):
            bench.archive.consume(fetched(range(8)))
        assert bench.listener.tail == [0, 1, 2]
        assert bench.archive.next_offset == 3
    monkeypatch.undo()
    bench.archive.consume(fetched(range(8)))
    bench.archive.publish()
    assert archived(store) == list(range(8))


def test_facts_are_consumed_while_a_segment_is_written(store: Store) -> None:
    writer = HeldExecutor()
    bench = Bench(store, seconds=60.0, writer=writer)
    bench.archive.consume(fetched(range(3)))
    bench.clock.now += 60
    bench.archive.publish_if_due()
    bench.archive.consume(fetched(range(3, 5)))
    bench.archive.reached(6)
    assert (bench.archive.next_offset, bench.archive.published_end) == (6, 0)
    assert (bench.listener.tail, archived(store)) == ([0, 1, 2, 3, 4], [])
    bench.clock.now += 59
    bench.archive.publish_if_due()
    assert writer.run() == 1
    assert (bench.listener.tail, archived(store)) == ([3, 4], [0, 1, 2])
    bench.archive.publish_if_due()
    assert (bench.archive.next_offset, bench.archive.published_end, bench.archive.tail.rows) == (6, 3, 2)
    bench.clock.now += 1
    bench.archive.publish_if_due()
    assert writer.run() == 1, "the age of what came meanwhile counts from when it came"
    bench.archive.publish_if_due()
    assert ends(bench) == [3, 6]
    assert archived(store) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("winner_end", [2, 3, 4, 5, 8])
def test_the_loser_of_a_race_had_consumed_further_meanwhile(store: Store, winner_end: int) -> None:
    writer = HeldExecutor()
    winner, loser = Bench(store), Bench(store, rows=3, writer=writer)
    loser.archive.consume(fetched(range(5)))
    winner.archive.consume(fetched(range(winner_end)))
    winner.archive.publish()
    writer.run()
    loser.archive.publish_if_due()
    assert loser.listener.segments == winner.listener.segments
    assert loser.listener.tail == list(range(winner_end, 5))
    assert (loser.archive.published_end, loser.archive.next_offset) == (winner_end, max(5, winner_end))


def test_a_segment_that_could_not_be_written_is_written_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, rows=3, writer=HeldExecutor())
    writer = bench.writer
    assert isinstance(writer, HeldExecutor)

    def fail(path: str, data: Any) -> None:
        raise StoreError("No space left on device")

    monkeypatch.setattr(store, "create", fail)
    bench.archive.consume(fetched(range(5)))
    writer.run()
    with pytest.raises(StoreError, match="No space"):
        bench.archive.publish_if_due()
    assert bench.archive.next_offset == 5
    monkeypatch.undo()
    bench.archive.consume(fetched(range(5)))
    writer.run()
    bench.archive.publish_if_due()
    assert ends(bench) == [3]
    assert bench.listener.tail == [3, 4]


def test_a_tail_is_dropped_with_what_is_being_written(store: Store) -> None:
    writer = HeldExecutor()
    bench = Bench(store, rows=3, writer=writer)
    bench.archive.consume(fetched(range(4)))
    writer.run()
    bench.archive.drop_tail()
    assert (bench.archive.next_offset, bench.archive.published_end) == (3, 3)
    assert (bench.listener.tail, archived(store)) == ([], [0, 1, 2])


def test_another_archivers_other_facts_are_an_error(store: Store) -> None:
    bench = Bench(store)
    other = made_facts(3, first_offset=100).table
    other = other.set_column(7, other.schema.field(7), made_facts(3).table["fact_offset"])
    info = describe(CHAIN, 0, 3, other)
    store.create(info.path, encode(info, other))
    bench.archive.consume(fetched(range(5)))
    with pytest.raises(ArchiveDisagrees, match=info.path):
        bench.archive.publish()
    bench.archive.drop_tail()
    assert bench.listener.tail == []
    assert bench.archive.next_offset == 0


def test_a_winner_that_can_not_be_read_is_an_error(store: Store) -> None:
    bench = Bench(store)
    store.create("facts/facts/g/00000/00000000000000000000.parquet", b"torn")
    bench.archive.consume(fetched(range(5)))
    with pytest.raises(SegmentError, match="damaged"):
        bench.archive.publish()


def test_facts_before_an_undecodable_one_are_taken(store: Store) -> None:
    bench = Bench(store)
    good = fetched(range(4))
    bad = FetchedFacts([*good.offsets, 4, 5], [*good.values, b"{}", good.values[0]], [*good.sources, *good.sources[:2]])
    with pytest.raises(UndecodableFact, match=r"facts/g/0, offset 4: trace_id: Field required; only lanes"):
        bench.archive.consume(bad)
    assert bench.archive.next_offset == 4
    bench.archive.publish()
    assert archived(store) == [0, 1, 2, 3]


def test_metrics_count_what_was_published(store: Store) -> None:
    bench = Bench(store, rows=3)
    bench.archive.consume(fetched(range(7)))
    assert bench.count("facts") == 7
    assert bench.count("segments") == 2
    assert bench.count("bytes") == sum(len(store.read(info.path)) for info in bench.listener.segments)
    assert bench.registry.get_sample_value("litehit_archive_publish_seconds_count") == 2


def test_a_gap_is_recorded_by_the_segment_behind_it_whose_name_is_the_end_before(store: Store) -> None:
    bench = Bench(store)
    bench.archive.consume(fetched(range(4)))
    bench.archive.skip(9)
    assert (bench.archive.published_end, bench.archive.next_offset) == (4, 9)
    bench.archive.consume(fetched(range(9, 12)))
    bench.archive.publish()
    bench.archive.consume(fetched(range(12, 14)))
    bench.archive.publish()
    places = [(one.base_offset, one.gap_end, one.end_offset) for one in bench.listener.segments]
    assert places == [
        (0, None, 4),
        (4, 9, 12),
        (12, None, 14),
    ]
    catalog = Catalog(store)
    catalog.refresh()
    assert catalog.view.chain(CHAIN).gaps == (Gap(4, 9),)
    assert catalog.next_offset(CHAIN) == 14
    assert archived(store) == [*range(4), *range(9, 14)]
    assert bench.count("gap_offsets") == 5


def test_a_chain_may_begin_with_a_gap(store: Store) -> None:
    bench = Bench(store)
    bench.archive.skip(6)
    bench.archive.consume(fetched([6]))
    bench.archive.publish()
    (info,) = bench.listener.segments
    assert (info.base_offset, info.gap_end, info.end_offset) == (0, 6, 7)


def test_a_gap_that_was_not_published_is_forgotten_with_the_tail(store: Store) -> None:
    bench = Bench(store)
    bench.archive.skip(6)
    bench.archive.consume(fetched([6]))
    bench.archive.drop_tail()
    assert bench.archive.next_offset == 0
    assert bench.archive.tail.gap_end is None


@pytest.mark.parametrize("winner_end", [3, 6, 9, 15])
def test_where_another_archiver_had_what_expired_here_there_is_no_gap_so_far(store: Store, winner_end: int) -> None:
    loser = Bench(store)
    loser.archive.skip(6)
    loser.archive.consume(fetched(range(6, 12)))
    winner = Bench(store)
    winner.archive.consume(fetched(range(winner_end)))
    winner.archive.publish()
    loser.archive.publish()
    kept = [*range(winner_end), *range(max(6, winner_end), 12)]
    assert archived(store) == kept
    assert loser.archive.next_offset == max(12, winner_end)
    catalog = Catalog(store)
    catalog.refresh()
    assert catalog.view.chain(CHAIN).gaps == ((Gap(3, 6),) if winner_end == 3 else ())


def test_a_gap_already_filled_by_another_archiver_is_none(store: Store) -> None:
    slow, quick = Bench(store), Bench(store)
    slow.archive.consume(fetched(range(2)))
    quick.archive.consume(fetched(range(8)))
    quick.archive.publish()
    slow.archive.skip(5)
    assert slow.archive.next_offset == 8
    assert slow.count("gap_offsets") == 0


def test_the_other_archivers_gap_counts_where_it_was_quicker(store: Store) -> None:
    """Both facts that expired for the winner and the rest of the loser's tail: one chain, and the loss is on record."""
    loser, winner = Bench(store), Bench(store)
    loser.archive.consume(fetched(range(8)))
    winner.archive.skip(5)
    winner.archive.consume(fetched(range(5, 7)))
    winner.archive.publish()
    loser.archive.publish()
    assert archived(store) == [5, 6, 7]
    assert [info.gap_end for info in loser.listener.segments] == [5, None]


@pytest.mark.parametrize("behind", [15, 20, 25, 40, 45])
def test_an_archiver_that_slept_while_its_offsets_were_merged_goes_on_behind_them(store: Store, behind: int) -> None:
    """Its segment's name is free again, since the others' were merged into one with an earlier name."""
    awake, asleep = Bench(store, rows=10), Bench(store)
    awake.archive.consume(fetched(range(10)))
    asleep = Bench(store)
    asleep.archive.consume(fetched(range(10, behind)))
    awake.archive.consume(fetched(range(10, 40)))
    whole = merge(store, 0, 40)
    awake.archive.consume(fetched(range(40, 42)))
    asleep.archive.publish()
    assert asleep.archive.next_offset == max(40, behind)
    assert asleep.archive.tail.rows == 0
    assert asleep.listener.segments[0] == whole
    assert asleep.listener.tail == []
    asleep.archive.consume(fetched(range(asleep.archive.next_offset, 50)))
    asleep.archive.publish()
    awake.archive.consume(fetched(range(42, 55)))
    awake.archive.publish()
    assert archived(store) == list(range(55))


def test_what_reached_over_the_end_is_not_lost_when_the_archiver_dies_of_it(store: Store) -> None:
    awake = Bench(store, rows=10)
    awake.archive.consume(fetched(range(30)))
    merge(store, 0, 30)
    table = made_facts(25, 20).table
    put_info = describe(CHAIN, 20, 50, table)
    store.create(put_info.path, encode(put_info, table))
    assert [overlap.segment for overlap in chain_of(store).overlaps] == [put_info]
    catalog = Catalog(store)
    catalog.refresh()
    assert find_end(catalog, CHAIN, Held(50, 50), accept_gap=False) == 50
    assert archived(store) == list(range(45))


def test_an_archiver_that_slept_while_its_offsets_expired_goes_on_behind_them(store: Store) -> None:
    awake = Bench(store, rows=10)
    awake.archive.consume(fetched(range(10)))
    asleep = Bench(store)
    asleep.archive.consume(fetched(range(10, 25)))
    awake.archive.consume(fetched(range(10, 30)))
    for info in chain_of(store).segments:
        expired = replace(info, rows=0, expired_rows=info.rows)
        (file,) = [file for file in store.list() if file.path == info.path]
        store.replace(info.path, encode(expired, FACT_SCHEMA.empty_table()), file.version)
    asleep.archive.publish()
    assert asleep.archive.next_offset == 30
    assert (asleep.archive.tail.rows, asleep.listener.tail, asleep.listener.segments) == (0, [], [])
    asleep.archive.consume(fetched(range(30, 33)))
    asleep.archive.publish()
    assert archived(store) == [30, 31, 32]


def test_what_was_merged_and_differs_is_told(store: Store) -> None:
    awake = Bench(store, rows=10)
    awake.archive.consume(fetched(range(10)))
    asleep = Bench(store)
    other = fetched(range(10, 25))
    asleep.archive.consume(FetchedFacts(other.offsets, fetched(range(11, 26)).values, other.sources))
    awake.archive.consume(fetched(range(10, 20)))
    merge(store, 0, 20)
    with pytest.raises(ChainBroken, match="hold other facts for the offsets 10 to 20"):
        asleep.archive.publish()
