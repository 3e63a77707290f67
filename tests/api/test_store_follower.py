"""The index over a real store: the first load, segments that come later, and a store in trouble."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.fact import RequestFact
from service.api.as_of import as_of_answer
from service.api.follower import StoreFollower
from service.api.index import FactIndex, IndexLoading
from service.api.rows import FactRows
from service.api.segment_reader import ParquetReader
from service.api.windows import TimeWindow
from service.archive.catalog import Catalog
from service.archive.errors import StoreError
from service.archive.local_store import LocalStore
from service.archive.merge import merge
from service.archive.retention import remove_older
from service.archive.segment import ChainKey, SegmentInfo, describe, segment_path
from service.archive.segment_writer import encode
from service.archive.store import Store, StoredFile
from tests.chains import put
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
EVERYTHING = TimeWindow()


class OneLook(threading.Event):
    """Stops a loop when it waits for the first time."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class NotingReader(ParquetReader):
    """Notes whose rows are read."""

    def __init__(self, store: Store, reads: list[SegmentInfo]) -> None:
        super().__init__(store)
        self._reads = reads

    def read(self, info: SegmentInfo, places: Sequence[int]) -> Iterator[FactRows]:
        self._reads.append(info)
        return super().read(info, places)


class Scene:
    """A store, what follows it, and nothing that runs by itself."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root)
        self.reads: list[SegmentInfo] = []
        self.index = FactIndex(NotingReader(self.store, self.reads), pages=root / "index", window_rows=1000)
        self.follower = StoreFollower(Catalog(self.store, CHAIN.topic), self.index, follow_seconds=60)

    def publish(self, facts: Sequence[RequestFact], base: int, chain: ChainKey = CHAIN) -> SegmentInfo:
        table = rows_of(facts, base).table
        info = describe(chain, base, base + len(facts), table)
        self.store.create(info.path, encode(info, table))
        return info

    def refresh(self) -> None:
        self.follower.refresh(threading.Event())

    def requests(self, window: TimeWindow = EVERYTHING) -> int:
        return sum(sums.requests for _, sums in self.index.select(window, None).groups)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_nothing_is_answered_before_the_store_is_summed(scene: Scene) -> None:
    scene.publish([fact(1)], 0)
    with pytest.raises(IndexLoading):
        scene.requests()
    scene.refresh()
    assert scene.requests() == 1


def test_segments_of_every_generation_and_partition_and_of_no_other_topic(scene: Scene) -> None:
    scene.publish([fact(1), fact(2)], 0)
    scene.publish([fact(3)], 2)
    scene.publish([fact(4)], 0, ChainKey(CHAIN.topic, "g0", 0))
    scene.publish([fact(5)], 0, ChainKey(CHAIN.topic, "g1", 1))
    scene.publish([fact(6)], 0, ChainKey("another", "g1", 0))
    scene.refresh()
    assert scene.requests() == 5
    as_of = scene.index.select(EVERYTHING, None).as_of
    assert [(key.generation, key.partition, reach.next_offset) for key, reach in as_of] == [
        ("g0", 0, 1),
        ("g1", 0, 3),
        ("g1", 1, 1),
    ]


def test_segments_that_come_later_are_summed_once(scene: Scene) -> None:
    scene.refresh()
    assert scene.requests() == 0
    scene.publish([fact(1), fact(2)], 0)
    scene.refresh()
    scene.refresh()
    assert scene.requests() == 2
    scene.publish([fact(3)], 2)
    scene.refresh()
    assert scene.requests() == 3
    assert scene.requests(TimeWindow(2, 3)) == 1


def test_a_segment_that_the_archiver_of_this_process_announced_is_known(scene: Scene) -> None:
    scene.refresh()
    scene.index.appended(CHAIN, rows_of([fact(1), fact(2), fact(3)], 0))
    info = scene.publish([fact(1), fact(2)], 0)
    scene.refresh()  # the follower sees it before the archiver tells
    scene.index.published(info)
    assert scene.requests() == 3
    assert scene.index.size().tail_facts == 1


def test_a_window_across_segments_and_tail(scene: Scene) -> None:
    scene.publish([fact(time, (1, 1)) for time in (5, 1, 9)], 0)
    scene.publish([fact(time, (1, 1)) for time in (4, 20)], 3)
    scene.refresh()
    scene.index.appended(CHAIN, rows_of([fact(7), fact(30)], 5))
    assert scene.requests(TimeWindow(4, 10)) == 4


def test_a_damaged_segment_is_named_and_nothing_is_answered_without_it(scene: Scene, tmp_path: Path) -> None:
    info = scene.publish([fact(1)], 0)
    path = tmp_path / info.path
    times = pq.read_metadata(path).row_group(0).column(2).data_page_offset
    content = bytearray(path.read_bytes())
    content[times : times + 36] = bytes(36)  # the footer stays whole
    path.write_bytes(content)
    scene.follower.run(OneLook())
    assert any(info.path in one for one in scene.follower.waiting())
    with pytest.raises(IndexLoading):
        scene.requests()


@pytest.mark.parametrize("before", [0, 1])
def test_answers_tell_of_a_file_at_the_end_that_is_no_segment_any_more(
    scene: Scene, tmp_path: Path, before: int
) -> None:
    if before:
        scene.publish([fact(1)], 0)
    last = scene.publish([fact(2)], before)
    content = (tmp_path / last.path).read_bytes()
    (tmp_path / last.path).write_bytes(content[:-9])
    scene.refresh()
    assert scene.requests() == before
    ((_, reach),) = scene.index.as_of()
    (told,) = as_of_answer([(CHAIN, reach)], {})
    assert (told.next_offset, told.missing) == (before, [])
    assert [last.path in one for one in told.unreadable] == [True]
    (tmp_path / last.path).unlink()  # as who mends it does: it is copied back as another file
    scene.publish([fact(2)], before)
    scene.refresh()
    ((_, reach),) = scene.index.as_of()
    assert (scene.requests(), reach.unreadable) == (before + 1, ())


def test_a_store_that_fails_is_asked_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prefix: str = "") -> list[StoredFile]:
        raise StoreError("the store is away")

    scene.publish([fact(1)], 0)
    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "list", fail)
        scene.follower.run(OneLook())
    assert scene.follower.waiting() == ("the store can't be followed: the store is away",)
    scene.follower.run(OneLook())
    assert scene.follower.waiting() == ()
    assert scene.requests() == 1


# --- segments that are merged, removed or missing ---------------------------------------------------------------------


def times(scene: Scene, window: TimeWindow = EVERYTHING) -> int:
    """The sum of the prompts' lengths, which tells facts apart."""
    return sum(sums.input_tokens for _, sums in scene.index.select(window, None).groups)


def publish_three(scene: Scene) -> list[RequestFact]:
    facts = [fact(time, (1, time), tokens=1000 + 10**time) for time in range(1, 7)]
    for base in (0, 2, 4):
        scene.publish(facts[base : base + 2], base)
    return facts


def catalog(scene: Scene) -> Catalog:
    made = Catalog(scene.store, CHAIN.topic)
    made.refresh()
    return made


def merge_all(scene: Scene) -> None:
    made = catalog(scene)
    merge(made, made.view.chain(CHAIN).segments)


def test_merged_segments_are_followed_without_reading_them(scene: Scene, tmp_path: Path) -> None:
    facts = publish_three(scene)
    scene.refresh()
    merge_all(scene)
    scene.reads.clear()
    scene.refresh()
    assert times(scene) == sum(one.input_token_len for one in facts)
    assert [(info.base_offset, info.end_offset) for info in scene.index.segments()] == [(0, 6)]
    assert scene.reads == []
    assert len(list((tmp_path / "index").rglob("*.pages"))) == 1
    assert times(scene, TimeWindow(3, 6)) == sum(one.input_token_len for one in facts[2:5])


def test_a_window_over_segments_that_were_merged_since(scene: Scene) -> None:
    facts = publish_three(scene)
    scene.refresh()
    merge_all(scene)
    assert times(scene, TimeWindow(2, 6)) == sum(one.input_token_len for one in facts[1:5])


def test_a_window_over_segments_that_expired_since(scene: Scene) -> None:
    facts = publish_three(scene)
    scene.refresh()
    made = catalog(scene)
    remove_older(made, CHAIN, made.archived_ns(made.view.chain(CHAIN).segments[1]))
    assert times(scene, TimeWindow(2, 6)) == sum(one.input_token_len for one in facts[2:5])
    ((_, reach),) = scene.index.as_of()
    assert (reach.start_offset, reach.next_offset, reach.missing) == (2, 6, ())


def test_a_chain_that_expired_as_a_whole_says_where_it_goes_on(scene: Scene) -> None:
    publish_three(scene)
    scene.refresh()
    remove_older(catalog(scene), CHAIN, 2**63 - 1)
    scene.refresh()
    assert scene.requests() == 0
    assert scene.index.earliest_ns() is None
    (told,) = as_of_answer(scene.index.as_of(), {CHAIN: 0})
    assert (told.start_offset, told.next_offset, told.time, told.lag) == (6, 6, None, 0)
    scene.publish([fact(9)], 6)
    scene.refresh()
    ((_, reach),) = scene.index.as_of()
    assert (reach.start_offset, reach.next_offset, reach.first_time_ns, reach.last_time_ns) == (6, 7, 9, 9)


def test_facts_that_expired_are_taken_off(scene: Scene, tmp_path: Path) -> None:
    facts = publish_three(scene)
    scene.refresh()
    made = catalog(scene)
    remove_older(made, CHAIN, made.archived_ns(made.view.chain(CHAIN).segments[1]))
    scene.refresh()
    assert times(scene) == sum(one.input_token_len for one in facts[2:])
    assert len(list((tmp_path / "index").rglob("*.pages"))) == 2
    again = Scene(tmp_path)
    again.refresh()
    assert times(again) == times(scene)
    assert again.index.as_of() == scene.index.as_of()


def test_a_missing_segment_in_the_middle_is_told(scene: Scene) -> None:
    facts = publish_three(scene)
    scene.store.delete(segment_path(CHAIN, 2))
    scene.refresh()
    ((_, reach),) = scene.index.as_of()
    assert (reach.start_offset, reach.next_offset, reach.missing) == (0, 6, ((2, 4),))
    (told,) = as_of_answer(scene.index.as_of(), {})
    assert [(one.from_offset, one.to_offset) for one in told.missing] == [(2, 4)]
    assert times(scene) == sum(one.input_token_len for one in facts[:2] + facts[4:])
    scene.publish(facts[2:4], 2)  # restored from a copy
    scene.refresh()
    ((_, reach),) = scene.index.as_of()
    assert reach.missing == ()
    assert times(scene) == sum(one.input_token_len for one in facts)


def test_facts_that_expired_before_they_were_archived_are_missing_too(scene: Scene) -> None:
    put(scene.store, 0, 2)
    put(scene.store, 2, 6, gap_end=4)
    put(scene.store, 8, 10)
    scene.refresh()
    ((_, reach),) = scene.index.as_of()
    assert reach.missing == ((2, 4), (6, 8))


def test_a_segment_that_is_lost_while_it_is_followed(scene: Scene) -> None:
    facts = publish_three(scene)
    scene.refresh()
    scene.store.delete(segment_path(CHAIN, 2))
    scene.refresh()
    assert times(scene) == sum(one.input_token_len for one in facts[:2] + facts[4:])
    ((_, reach),) = scene.index.as_of()
    assert reach.missing == ((2, 4),)


# --- starts -----------------------------------------------------------------------------------------------------------


def test_a_start_reads_pages_and_no_rows(scene: Scene, tmp_path: Path) -> None:
    facts = publish_three(scene)
    scene.refresh()
    again = Scene(tmp_path)
    again.refresh()
    assert again.reads == []
    assert times(again) == sum(one.input_token_len for one in facts)


def test_a_start_over_a_store_that_has_changed_reads_what_is_new(scene: Scene, tmp_path: Path) -> None:
    facts = publish_three(scene)
    scene.refresh()
    merge_all(scene)
    new = scene.publish([fact(7, tokens=5)], 6)
    again = Scene(tmp_path)
    again.refresh()
    assert [info.base_offset for info in again.reads] == [0, new.base_offset]  # what was merged has another name
    assert times(again) == sum(one.input_token_len for one in facts) + 5
    assert len(list((tmp_path / "index").rglob("*.pages"))) == 2  # those of the merged ones are swept


def test_a_damaged_page_file_is_made_again(scene: Scene, tmp_path: Path) -> None:
    facts = publish_three(scene)
    scene.refresh()
    for number, path in enumerate(sorted((tmp_path / "index").rglob("*.pages"))):
        content = bytearray(path.read_bytes())
        content[-1 - number] ^= 1
        path.write_bytes(content[: len(content) - 8 * (number == 2)])
    again = Scene(tmp_path)
    again.refresh()
    assert len(again.reads) == 3
    assert times(again) == sum(one.input_token_len for one in facts)


def test_a_load_that_is_told_to_stop(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_three(scene)
    monkeypatch.setattr("service.api.follower._LOAD_AT_ONCE", 1)
    stop = threading.Event()
    monkeypatch.setattr(scene.index, "loading_at", lambda done, total: stop.set())
    scene.follower.refresh(stop)
    assert len(scene.index.segments()) == 1
    with pytest.raises(IndexLoading):
        times(scene)
    scene.refresh()
    assert len(scene.index.segments()) == 3
