"""Which snapshot a lane goes on from, and what a reset makes of it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from litehit.config_changes import ConfigChange
from litehit.registration import Registration
from litehit.registry import Registry
from service.archive.errors import StoreError
from service.archive.open_store import open_store
from service.archive.store import Store
from service.errors import CannotRestore, CoreChanged, NothingToReset
from service.lanes.committed import Committed, RequestsTopic
from service.lanes.reset import ResetTo, reset_lane
from service.lanes.restore import RestorePlan, Standing
from service.lanes.restorer import Restorer
from service.lanes.snapshot import Snapshot, encode
from service.lanes.snapshots import Snapshots
from tests import lanes_harness as harness
from tests import snapshots_made as made

GROUP = "group"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return harness.registry(tmp_path_factory.mktemp("registry"))


@pytest.fixture(scope="module")
def kept(known: Registry) -> Snapshot:
    return made.made_snapshot(known, 100)


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


@pytest.fixture
def snapshots(store: Store) -> Snapshots:
    return Snapshots(store, made.TOPIC)


def restorer_of(snapshots: Snapshots, known: Registry, group: str = GROUP) -> Restorer:
    return Restorer(snapshots, group, known, lambda partition, one: made.new_lane(known, one, partition))


@pytest.fixture
def restorer(snapshots: Snapshots, known: Registry) -> Restorer:
    return restorer_of(snapshots, known)


def standing(offset: int | None, low: int = 0, end: int = 1000, history: int = 0) -> Standing:
    topic = made.TOPIC
    at = Committed(None) if offset is None else Committed(offset, topic.generation, topic.partitions, history)
    return Standing(at, low, end)


def test_the_newest_that_is_not_of_the_future_is_taken(
    snapshots: Snapshots, restorer: Restorer, kept: Snapshot
) -> None:
    for offset in (100, 200, 300):
        snapshots.write(replace(kept, next_offset=offset))
    restored = restorer.restore(3, standing(250))
    assert restored.plan == RestorePlan(200, 250)
    assert restored.lane.next_offset == 200
    assert len(restored.lane.instances()) == 5
    assert restorer.restore(3, standing(300)).plan == RestorePlan(300, 300)
    assert restorer.restore(3, standing(99)).plan == RestorePlan(0, 99)
    assert restorer.restore(2, standing(250)).snapshot is None


def test_a_core_that_is_none_is_skipped_like_a_damaged_file(
    snapshots: Snapshots, restorer: Restorer, kept: Snapshot, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots.write(kept)
    (first, *rest) = kept.instances
    broken = replace(first, core={**first.core, "positions": first.core["positions"] * 0})
    snapshots.write(replace(kept, next_offset=200, instances=[broken, *rest]))
    assert restorer.restore(3, standing(250)).plan == RestorePlan(100, 250)
    assert "positions is no permutation" in capsys.readouterr().out


def test_an_audit_goes_as_far_back_as_it_can(snapshots: Snapshots, restorer: Restorer, kept: Snapshot) -> None:
    for offset in (100, 200, 300):
        snapshots.write(replace(kept, next_offset=offset))
    assert restorer.restore_earliest(3, standing(300)).plan == RestorePlan(0, 300)
    assert restorer.restore_earliest(3, standing(300, low=50)).plan == RestorePlan(100, 300)
    with pytest.raises(CannotRestore, match="have expired"):
        restorer.restore_earliest(3, standing(90, low=50))


def test_a_partition_that_came_after_the_start_is_refused(restorer: Restorer) -> None:
    with pytest.raises(CannotRestore, match=r"requests/4: the topic has got more partitions than the 4 .* restart"):
        restorer.restore(4, standing(None))


class CountingStore:
    def __init__(self, store: Store) -> None:
        self.reads: Counter[str] = Counter()
        self._store = store

    def read(self, path: str) -> bytes:
        self.reads[path] += 1
        return self._store.read(path)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_a_refused_lane_reads_its_snapshots_again_only_when_something_changed(
    store: Store, known: Registry, kept: Snapshot
) -> None:
    counting = CountingStore(store)
    snapshots = Snapshots(counting, made.TOPIC)  # type: ignore[arg-type]
    restorer = restorer_of(snapshots, known)
    snapshots.write(kept)
    for end in (500, 600, 700):
        with pytest.raises(CannotRestore, match="have expired"):
            restorer.restore(3, standing(150, low=120, end=end))
    assert counting.reads[kept.path] == 1
    snapshots.write(replace(kept, next_offset=150))
    assert restorer.restore(3, standing(150, low=120)).plan == RestorePlan(150, 150)


@pytest.mark.parametrize(
    ("to", "start", "instances"), [(ResetTo.COLD, 400, 0), (ResetTo.EARLIEST, 200, 0), (ResetTo.SNAPSHOT, 400, 5)]
)
def test_a_reset_is_followed_once(
    snapshots: Snapshots, restorer: Restorer, kept: Snapshot, to: ResetTo, start: int, instances: int
) -> None:
    snapshots.write(kept)
    refused = standing(400, low=200)
    with pytest.raises(CannotRestore, match="have expired"):
        restorer.restore(3, refused)
    done = reset_lane(snapshots, 3, to, GROUP, refused)
    assert (done.unread, done.again) == (0, 400 - start)
    assert done.caches_end == (100 if to is ResetTo.SNAPSHOT else None)
    for _ in range(2):  # until the lane commits, it begins there again and again
        restored = restorer.restore(3, refused)
        assert restored.plan == RestorePlan(start, start)
        assert (restored.lane.history, len(restored.lane.instances())) == (1, instances)
    went_on = standing(410, low=200, history=1)
    assert restorer.restore(3, went_on).plan == RestorePlan(start, 410)
    # Passing the offset where it was chosen brings nothing back.
    assert restorer.restore(3, standing(400, low=200, history=1)).plan == RestorePlan(start, 400)


def test_a_reset_lapses_for_a_lane_that_went_on_and_for_other_groups(
    snapshots: Snapshots, restorer: Restorer, known: Registry, kept: Snapshot
) -> None:
    snapshots.write(kept)
    reset_lane(snapshots, 3, ResetTo.COLD, GROUP, standing(150))
    assert restorer.restore(3, standing(160)).plan == RestorePlan(0, 160)
    assert restorer_of(snapshots, known, "another").restore(3, standing(150)).plan == RestorePlan(0, 150)


def test_a_reset_of_requests_that_expired_unread_says_how_many(snapshots: Snapshots) -> None:
    done = reset_lane(snapshots, 3, ResetTo.COLD, GROUP, standing(400, low=450))
    assert (done.snapshot.next_offset, done.unread, done.again) == (450, 50, 0)


def test_a_second_reset_follows_the_first(snapshots: Snapshots, restorer: Restorer, kept: Snapshot) -> None:
    snapshots.write(kept)
    refused = standing(400, low=200)
    reset_lane(snapshots, 3, ResetTo.EARLIEST, GROUP, refused)
    reset_lane(snapshots, 3, ResetTo.COLD, GROUP, refused)
    restored = restorer.restore(3, refused)
    assert (restored.plan, restored.lane.history) == (RestorePlan(400, 400), 2)


def test_a_recreated_topic_begins_at_its_start_once_that_is_chosen(snapshots: Snapshots, restorer: Restorer) -> None:
    foreign = Standing(Committed(400, "before", 4, 2), 0, 30)
    with pytest.raises(CannotRestore, match="the topic was recreated"):
        restorer.restore(3, foreign)
    done = reset_lane(snapshots, 3, ResetTo.EARLIEST, GROUP, foreign)
    assert (done.committed, done.again, done.snapshot.next_offset) == (None, 0, 0)
    restored = restorer.restore(3, foreign)
    assert (restored.plan, restored.lane.history) == (RestorePlan(0, 0), 3)


def test_caches_of_another_number_of_partitions_go_on_once_that_is_chosen(
    store: Store, restorer: Restorer, kept: Snapshot
) -> None:
    fewer = RequestsTopic("requests", "generation", 2)
    Snapshots(store, fewer).write(replace(kept, topic=fewer))
    before = Standing(Committed(100, "generation", 2, 0), 0, 500)
    with pytest.raises(CannotRestore, match="has 4 partitions, and had 2"):
        restorer.restore(3, before)
    reset_lane(Snapshots(store, made.TOPIC), 3, ResetTo.SNAPSHOT, GROUP, before)
    restored = restorer.restore(3, before)
    assert (restored.plan, len(restored.lane.instances())) == (RestorePlan(100, 100), 5)


def test_there_must_be_a_snapshot_to_reset_to(store: Store, snapshots: Snapshots, kept: Snapshot) -> None:
    store.create(kept.path, bytes(encode(kept))[:-1])
    with pytest.raises(NothingToReset, match=re.escape("requests/3: there is no snapshot that can be read")):
        reset_lane(snapshots, 3, ResetTo.SNAPSHOT, GROUP, standing(400))
    # A partition of which nothing was processed lacks nothing.
    assert reset_lane(snapshots, 3, ResetTo.SNAPSHOT, GROUP, standing(None)).caches_end is None


def test_a_store_that_fails_is_no_refusal(tmp_path: Path, known: Registry) -> None:
    class Failing:
        def list(self, _: str) -> list[object]:
            raise StoreError("away")

    restorer = restorer_of(Snapshots(Failing(), made.TOPIC), known)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="away"):
        restorer.start(3, lambda _: standing(5)).result(10)


REGISTERED = (Registration("chat-a", block_bytes=5),)


@pytest.mark.parametrize(
    ("to", "low", "kept_there"),
    [
        (ResetTo.COLD, 150, True),
        (ResetTo.SNAPSHOT, 150, True),
        (ResetTo.EARLIEST, 0, False),  # they are read again
        (ResetTo.EARLIEST, 150, True),
    ],
)
def test_a_reset_keeps_what_the_stream_has_registered(
    snapshots: Snapshots, kept: Snapshot, to: ResetTo, low: int, kept_there: bool
) -> None:
    snapshots.write(replace(kept, registrations=REGISTERED))
    done = reset_lane(snapshots, 3, to, GROUP, standing(200, low=low))
    assert done.snapshot.registrations == (REGISTERED if kept_there else ())
    assert next(snapshots.readable(3)).registrations == done.snapshot.registrations


def test_what_was_replayed_in_vain_is_not_replayed_again(
    snapshots: Snapshots, restorer: Restorer, kept: Snapshot
) -> None:
    snapshots.write(kept)
    restored = restorer.restore(3, standing(150))
    assert restored.snapshot is not None
    change = ConfigChange("chat-a", "block_size_tokens", 4, 8, True)
    error = restorer.refuse(3, [change])
    assert f"that of the caches in {restored.snapshot.path}: chat-a has block_size_tokens 4 there and 8 now" in str(
        error
    )
    assert "; put it back, or choose with" in str(error)
    with pytest.raises(CannotRestore) as caught:
        restorer.restore(3, standing(150))
    assert caught.value is error
    assert restorer.restore(3, standing(160)).plan == RestorePlan(100, 160)


def test_a_changed_core_is_refused_before_or_after_the_replay(
    snapshots: Snapshots, known: Registry, kept: Snapshot, tmp_path: Path
) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(harness.REGISTRY.replace("ttl_seconds: 30", "ttl_seconds: 31"), encoding="utf-8")
    changed = Registry.load(path)
    snapshots.write(kept)
    with pytest.raises(CannotRestore, match="agent-a has ttl_seconds 30 there and 31 now"):
        restorer_of(snapshots, changed).restore(3, standing(100))
    lane = restorer_of(snapshots, changed).restore(3, standing(150)).lane  # registrations may yet change that
    with pytest.raises(CoreChanged, match="agent-a has ttl_seconds 30 there and 31 now"):
        lane.go_live()


def test_a_reset_to_a_snapshots_caches_keeps_the_traces_and_others_forget_them(
    snapshots: Snapshots, kept: Snapshot
) -> None:
    snapshots.write(replace(kept, repeats_window=7))
    to_caches = reset_lane(snapshots, 3, ResetTo.SNAPSHOT, GROUP, standing(400, low=200)).snapshot
    assert (to_caches.repeats_window, len(to_caches.instances)) == (7, len(kept.instances))
    earliest = reset_lane(snapshots, 3, ResetTo.EARLIEST, GROUP, standing(400, low=200)).snapshot
    assert earliest.instances == ()
