"""Lanes that stop and go on, on a real Kafka: warm from a snapshot, with the same bytes, or stopped with a choice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from litehit.facts import FactBatch
from litehit.instance import InstanceEngine
from litehit.registry import Registry
from litehit.request import Request, RequestBatch
from schemas.fact import RequestFact
from service.api.index_state import IndexState
from service.api.rows import FactRows
from service.api.summary import Question, Summaries
from service.api.totals import Totals
from service.archive.open_store import open_store
from service.lanes.committed import RequestsTopic
from service.lanes.snapshots import Snapshots
from service.lanes.status import LanesStatus, LaneState, LaneStatus
from service.settings import Settings
from service.topics import TopicLayout, prepare_topics
from tests import lanes_harness as harness
from tests.archiver_stores import RefusingStore
from tests.cli_harness import litehit
from tests.kafka.test_exactly_once import assert_each_fact_once, committed_facts, publish

Run = Callable[..., harness.RunningWorker]
Places = list[tuple[int, int]]


@pytest.fixture(autouse=True)
def _looks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.lanes.seat._AGAIN_SECONDS", 0.2)


@pytest.fixture
def snapshots(settings: Settings, layout: TopicLayout) -> Snapshots:
    topic = RequestsTopic(settings.requests_topic, layout.requests_generation, layout.partitions)
    return Snapshots(open_store(settings.store), topic)


def kept(snapshots: Snapshots) -> dict[int, list[int]]:
    """Next offsets of the snapshots of each partition that has any, newest first."""
    found = {
        partition: [one.next_offset for one in snapshots.readable(partition)]
        for partition in range(snapshots.topic.partitions)
    }
    return {partition: offsets for partition, offsets in found.items() if offsets}


def ends(places: Places) -> dict[int, int]:
    """One past the last record of each partition that has any."""
    return {partition: offset + 1 for partition, offset in sorted(places)}


def at_rest(status: LanesStatus) -> bool:
    return bool(status.lanes) and all(lane.state is LaneState.RUNNING and lane.lag == 0 for lane in status.lanes)


def work_through(run_worker: Run, settings: Settings, requests: Sequence[Request], **changes: Any) -> Places:
    """Publish and process requests with a worker that then ends as planned."""
    with run_worker(**changes) as worker:
        places = publish(settings, requests)
        worker.wait_until(harness.caught_up(places))
    return places


def saved(places: Places) -> Callable[[LanesStatus], bool]:
    """A snapshot of each lane that has processed these records stands after its last one."""
    wanted = ends(places).items()
    return lambda now: all(
        snapshot is not None and snapshot.next_offset == end
        for partition, end in wanted
        for snapshot in [lane_of(now, partition).snapshot]
    )


def lane_of(status: LanesStatus, partition: int) -> LaneStatus:
    return next(lane for lane in status.lanes if lane.partition == partition)


def stopped(status: LanesStatus) -> dict[int, str]:
    return {lane.partition: lane.error or "" for lane in status.lanes if lane.state is LaneState.STOPPED}


def expire(settings: Settings, partition: int, before: int) -> None:
    with AdminClient({"bootstrap.servers": str(settings.bootstrap), "log_level": 4}) as admin:
        places = [TopicPartition(settings.requests_topic, partition, before)]
        for future in admin.delete_records(places).values():
            future.result()


def test_a_planned_shutdown_leaves_a_snapshot_at_the_committed_offset_and_nothing_is_replayed(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots
) -> None:
    requests = harness.make_requests(600, seed=41)
    places = work_through(run_worker, settings, requests[:300])
    assert {partition: offsets[0] for partition, offsets in kept(snapshots).items()} == ends(places)
    with run_worker() as worker:
        status = worker.wait_until(at_rest)
        assert {lane.partition: lane.restored_from for lane in status.lanes if lane.restored_from} == ends(places)
        assert [lane.replayed for lane in status.lanes] == [0] * len(status.lanes)
        more = publish(settings, requests[300:])
        worker.wait_until(harness.caught_up(more))
        hit = more[0][0]
        assert worker.metric("litehit_lane_restored_from_offset", partition=str(hit)) == ends(places)[hit]
        assert 0 < worker.metric("litehit_snapshot_age_seconds", partition=str(hit)) < 60
    assert worker.metric("litehit_snapshot_bytes", partition=str(hit)) > 1000
    assert worker.metric("litehit_snapshot_pause_seconds_count") == len(ends(more))
    assert worker.metric("litehit_snapshot_write_seconds_count") == len(ends(more))
    assert {partition: offsets[0] for partition, offsets in kept(snapshots).items()} == ends(more)
    assert_each_fact_once(settings, layout, requests, known)


def test_an_idle_lane_writes_no_snapshot_twice(settings: Settings, run_worker: Run, snapshots: Snapshots) -> None:
    work_through(run_worker, settings, harness.make_requests(100, seed=42))
    before = open_store(settings.store).list()
    with run_worker(snapshot_seconds=0.01) as worker:
        worker.wait_until(at_rest)
    assert open_store(settings.store).list() == before


@pytest.mark.parametrize("fault", ["missing", "damaged"])
def test_without_the_newest_snapshot_the_one_before_replays_only_what_came_after_it(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots, fault: str
) -> None:
    """Missing: as after a crash. The facts are those of an undisturbed run either way."""
    requests = harness.make_requests(900, seed=43)
    first = ends(work_through(run_worker, settings, requests[:300]))
    second = ends(work_through(run_worker, settings, requests[300:600]))
    store = open_store(settings.store)
    for partition in second:
        newest = snapshots.files(partition)[0].path
        content = bytearray(store.read(newest))
        content[-9] ^= 1
        store.delete(newest)
        if fault == "damaged":
            store.create(newest, bytes(content))
    with run_worker() as worker:
        status = worker.wait_until(at_rest)
        for lane in status.lanes:
            begin = first.get(lane.partition, 0)
            assert lane.restored_from == first.get(lane.partition)
            assert lane.replayed == second.get(lane.partition, begin) - begin
            assert worker.metric("litehit_lane_replayed_records", partition=str(lane.partition)) == lane.replayed
        third = publish(settings, requests[600:])
        worker.wait_until(harness.caught_up(third))
    assert_each_fact_once(settings, layout, requests, known)
    assert {partition: offsets[0] for partition, offsets in kept(snapshots).items()} == ends(third)


def test_snapshots_are_taken_while_a_lane_works_and_three_are_kept(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots
) -> None:
    requests = harness.make_requests(400, seed=44)
    with run_worker(snapshot_seconds=0.01) as worker:
        for low in range(0, 400, 50):
            places = publish(settings, requests[low : low + 50])
            worker.wait_until(harness.caught_up(places))
            worker.wait_until(saved(places))
    assert {len(offsets) for offsets in kept(snapshots).values()} == {3}
    assert_each_fact_once(settings, layout, requests, known)


def test_many_records_make_a_snapshot_before_its_time(
    settings: Settings, run_worker: Run, snapshots: Snapshots
) -> None:
    with run_worker(snapshot_seconds=3600, snapshot_records=40) as worker:
        worker.wait_until(harness.caught_up(publish(settings, harness.make_requests(300, seed=45))))
        worker.wait_until(lambda now: any(lane.snapshot is not None for lane in now.lanes))


def test_a_store_that_takes_nothing_stops_no_lane(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots
) -> None:
    requests = harness.make_requests(300, seed=46)
    store = RefusingStore(settings.store)
    store.refuse()
    with run_worker(into=store, snapshot_seconds=0.05) as worker:
        places = publish(settings, requests[:150])
        worker.wait_until(harness.caught_up(places))
        worker.wait_until(lambda _: worker.metric("litehit_snapshot_failures_total", partition=str(places[0][0])) >= 2)
        assert kept(snapshots) == {}
        store.allow()
        places = publish(settings, requests[150:])
        worker.wait_until(harness.caught_up(places))
        worker.wait_until(saved(places))
    assert {partition: offsets[0] for partition, offsets in kept(snapshots).items()} == ends(places)
    assert_each_fact_once(settings, layout, requests, known)


def test_a_revoked_partition_leaves_a_snapshot_for_its_next_owner(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry
) -> None:
    requests = harness.make_requests(600, seed=47)
    with run_worker() as stays:
        places = publish(settings, requests[:300])
        stays.wait_until(harness.caught_up(places))
        with run_worker(transactional_id=f"{settings.transactional_id}-b") as joins:
            status = joins.wait_until(at_rest)
            (moved,) = status.lanes
            assert (moved.restored_from, moved.replayed) == (ends(places).get(moved.partition), 0)
            stays.wait_until(lambda now: len(now.lanes) == 2)
            publish(settings, requests[300:])
            joins.wait_until(lambda now: at_rest(now) and sum(lane.counts.facts for lane in now.lanes) > 0)
        stays.wait_until(lambda now: len(now.lanes) == 3 and at_rest(now))
    assert_each_fact_once(settings, layout, requests, known)


# --- never silently cold --------------------------------------------------------------------------------------------


def facts_from(
    requests: Sequence[Request], places: Places, partition: int, known: Registry, start: int, warm: int = 0
) -> dict[int, bytes]:
    """Facts by offset of a partition's requests from `start` on, in caches that know the requests before `warm`."""
    engines: dict[str, InstanceEngine] = {}
    facts = {}
    for request, (at, offset) in sorted(zip(requests, places, strict=True), key=lambda pair: pair[1]):
        if at != partition or warm <= offset < start:
            continue
        engine = engines.setdefault(request.instance_id, InstanceEngine(known.resolve(request.instance_id)))
        (fact,) = engine.process(RequestBatch.from_requests([request]))
        if offset >= start:
            facts[offset] = fact.to_json()
    return facts


def reset(settings: Settings, *arguments: str) -> Any:
    """`litehit lanes reset`, as an operator types it."""
    names = {"requests_topic", "facts_topic", "dead_letters_topic", "group_id"}
    variables = {f"LITEHIT_{name.upper()}": str(getattr(settings, name)) for name in names}
    place = ("--bootstrap", str(settings.bootstrap), "--store", settings.store, "--json")
    return json.loads(litehit("lanes", "reset", *arguments, *place, settings=variables).stdout)


@pytest.mark.parametrize("to", ["cold", "earliest", "snapshot"])
def test_requests_that_expired_stop_their_lane_until_an_operator_chooses(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots, to: str
) -> None:
    requests = harness.make_requests(900, seed=48)
    places = work_through(run_worker, settings, requests[:300])
    hit = places[0][0]
    snapshot_end = ends(places)[hit]
    places += work_through(run_worker, settings, requests[300:600])
    committed = ends(places)[hit]
    store = open_store(settings.store)
    store.delete(snapshots.files(hit)[0].path)  # as after a crash before it was written
    low = snapshot_end + 7
    expire(settings, hit, low)
    with run_worker() as worker:
        status = worker.wait_until(lambda now: bool(stopped(now)))
        assert list(stopped(status)) == [hit]
        error = stopped(status)[hit]
        assert error.startswith(f"{settings.requests_topic}/{hit}: the requests before offset {low} have expired")
        assert f"the newest usable snapshot ends at {snapshot_end}" in error
        assert f"litehit lanes reset --partition {hit} --to cold|earliest|snapshot" in error
        assert worker.metric("litehit_lane_state", partition=str(hit), state="stopped") == 1
        places += publish(settings, requests[600:])
        worker.wait_until(harness.caught_up([place for place in places if place[0] != hit]))
        assert stopped(worker.worker.status()) == {hit: error}

        (done,) = reset(settings, "--partition", str(hit), "--to", to, *(["--yes"] if to == "earliest" else []))
        start = low if to == "earliest" else committed
        assert (done["partition"], done["next_offset"]) == (hit, start)
        assert done["again"] == (committed - low if to == "earliest" else 0)
        worker.wait_until(lambda now: not stopped(now) and at_rest(now))
    # The choice is followed once: a restart goes on from what came of it.
    with run_worker() as worker:
        status = worker.wait_until(at_rest)
        assert sum(lane.replayed for lane in status.lanes) == 0
        (again,) = publish(settings, requests[:1])
        worker.wait_until(harness.caught_up([again]))
    facts = [fact for fact in committed_facts(settings, layout.partitions) if fact.partition == hit]
    before = facts_from(requests, places, hit, known, 0)
    expected = [before[offset] for offset in sorted(before) if offset < committed]
    after = facts_from(requests, places, hit, known, start, warm=snapshot_end if to == "snapshot" else 0)
    expected += [after[offset] for offset in sorted(after)]
    assert [fact.value for fact in facts if int(fact.source.split("/")[2]) < again[1] or again[0] != hit] == expected


def test_requests_that_expired_unread_stop_their_lane_although_the_caches_are_there(
    settings: Settings, run_worker: Run
) -> None:
    requests = harness.make_requests(400, seed=49)
    hit = work_through(run_worker, settings, requests[:200])[0][0]
    more = ends(publish(settings, requests[200:]))
    expire(settings, hit, more[hit] - 1)
    with run_worker() as worker:
        status = worker.wait_until(lambda now: bool(stopped(now)))
        assert list(stopped(status)) == [hit]
        (done,) = reset(settings, "--partition", str(hit), "--to", "snapshot")
        assert done["next_offset"] == more[hit] - 1
        assert done["unread"] > 0
        worker.wait_until(lambda now: not stopped(now) and at_rest(now))


def test_requests_that_expire_before_a_running_lane_has_read_them_stop_it(settings: Settings, run_worker: Run) -> None:
    """Nothing is passed over in silence: the lane does not go on at the first request that is left."""
    hold = harness.Hold()
    requests = harness.make_requests(400, seed=56)
    with run_worker(hold=hold) as worker:
        worker.wait_until(harness.caught_up(publish(settings, requests[:200])))
        hold.held.set()
        hold.go_round(3)  # nothing is in its hands when the hold comes into force
        places = publish(settings, requests[200:])
        hit, last = places[-1]
        expire(settings, hit, last)
        hold.held.clear()
        worker.wait_until(harness.caught_up([place for place in places if place[0] != hit]))
        status = worker.wait_until(lambda now: bool(stopped(now)))
        assert list(stopped(status)) == [hit]
        assert f"the requests before offset {last} have expired" in stopped(status)[hit]
        assert sum(lane.counts.consumed for lane in status.lanes) == 400 - sum(at == hit for at, _ in places)


OTHER_REGISTRY = harness.REGISTRY.replace("capacity_gb: [1]", "capacity_gb: [1, 0.00001]").replace("1024", "512")


def with_registry(folder: Path, text: str) -> Registry:
    path = folder / "changed.yaml"
    path.write_text(text, encoding="utf-8")
    return Registry.load(path)


def test_a_changed_core_is_refused_with_the_difference_and_a_changed_charge_applies(
    settings: Settings, layout: TopicLayout, run_worker: Run, tmp_path: Path
) -> None:
    requests = harness.make_requests(400, seed=50)
    places = work_through(run_worker, settings, requests[:200])
    used = {at for at, one in zip((at for at, _ in places), requests, strict=False) if one.instance_id[:4] == "chat"}
    coarse = OTHER_REGISTRY.replace("block_size_tokens: 4,", "block_size_tokens: 8, trace_block_size_tokens: 4,", 1)
    with run_worker(known=with_registry(tmp_path, coarse)) as worker:
        status = worker.wait_until(lambda now: set(stopped(now)) == used)
        for error in stopped(status).values():
            assert "has block_size_tokens 4 there and 8 now" in error
            assert "put it back, or choose with litehit lanes reset" in error
    changed = with_registry(tmp_path, OTHER_REGISTRY)
    with run_worker(known=changed) as worker:
        worker.wait_until(harness.caught_up(publish(settings, requests[200:])))
        status = worker.worker.status()
        held = {instance.config.instance_id: instance.config for lane in status.lanes for instance in lane.instances}
        assert held["chat-a"].block_bytes == 512
        assert held["chat-a"].capacity_gb == (1.0, 0.00001)
    facts = [
        RequestFact.model_validate_json(fact.value or b"") for fact in committed_facts(settings, layout.partitions)
    ]
    charges = Counter(fact.block_bytes for fact in facts if fact.instance_id.startswith("chat"))
    assert charges.keys() == {1024, 512}
    recharged = [fact.model_copy(update={"block_bytes": 1024}) for fact in facts if fact.instance_id == "chat-a"]
    straight = harness.straight_facts(requests, harness.registry(tmp_path))
    assert [fact.to_json() for fact in recharged] == straight["chat-a"]


def test_partitions_that_were_added_stop_the_lanes_until_all_are_reset(
    settings: Settings, run_worker: Run, known: Registry
) -> None:
    requests = harness.make_requests(300, seed=51)
    used = set(ends(work_through(run_worker, settings, requests[:200])))
    with AdminClient({"bootstrap.servers": str(settings.bootstrap), "log_level": 4}) as admin:
        wanted = [NewPartitions(topic, 5) for topic in settings.topics]
        for future in admin.create_partitions(wanted).values():
            future.result()
        harness.wait_for(
            lambda: (
                len(admin.list_topics(settings.requests_topic, timeout=10).topics[settings.requests_topic].partitions)
                == 5
            )
        )
    larger = prepare_topics(settings, str(settings.bootstrap))
    assert larger.partitions == 5
    with run_worker(layout=larger) as worker:
        status = worker.wait_until(lambda now: len(stopped(now)) == 5)
        assert used <= set(stopped(status))
        assert all("the topic has 5 partitions, and had 3" in error for error in stopped(status).values())
        assert [one["partition"] for one in reset(settings, "--partition", "all", "--to", "snapshot")] == [
            0,
            1,
            2,
            3,
            4,
        ]
        worker.wait_until(lambda now: len(now.lanes) == 5 and at_rest(now))
        worker.wait_until(harness.caught_up(publish(settings, requests[200:])))


# --- counters -------------------------------------------------------------------------------------------------------


def assert_counters_are_those_of_a_query(status: LanesStatus, settings: Settings, partitions: int) -> set[float]:
    """Each instance's counters equal what `/query` says over its facts; the capacities that were compared."""
    facts = [RequestFact.model_validate_json(fact.value or b"") for fact in committed_facts(settings, partitions)]
    rows = FactRows.of(FactBatch.from_facts(facts))
    totals = Totals().plus(rows.groups, rows.sums())
    compared = set()
    instances = [instance for lane in status.lanes for instance in lane.instances]
    assert {instance.config.instance_id for instance in instances} == {fact.instance_id for fact in facts}
    for instance in instances:
        capacities = instance.config.capacity_gb
        summaries = Summaries.of(Question(capacities), IndexState(totals).everything)
        answers = {one["instance_id"]: one for one in json.loads(f"[{summaries.instances}]")}
        answer = answers[instance.config.instance_id]
        told = {**instance.totals.summary(), "capacity_gb": list(capacities)}
        assert {name: answer[name] for name in told} == told
        compared |= set(capacities)
    return compared


def assert_metrics_show_the_counters(worker: harness.RunningWorker, status: LanesStatus) -> None:
    for lane in status.lanes:
        for instance in lane.instances:
            labels = {"partition": str(lane.partition), "instance_id": instance.config.instance_id}
            totals = instance.totals
            assert worker.metric("litehit_instance_requests_total", **labels) == totals.requests
            assert worker.metric("litehit_instance_input_tokens_total", **labels) == totals.input_tokens
            capacities = [*(f"{capacity:g}" for capacity in totals.capacity_gb), "+Inf"]
            for name, hits in (
                ("blocks", [*totals.hit_blocks, totals.ceiling_blocks]),
                ("tokens", [*totals.hit_tokens, totals.ceiling_tokens]),
            ):
                for capacity, count in zip(capacities, hits, strict=True):
                    of = {**labels, "capacity_gb": capacity}
                    assert worker.metric(f"litehit_instance_hit_{name}_total", **of) == count


def test_counters_equal_a_query_across_restarts_aborts_and_a_slot_added_later(
    settings: Settings, layout: TopicLayout, run_worker: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = harness.abort_every_third(monkeypatch)
    requests = harness.make_requests(900, seed=52)
    first = with_registry(tmp_path, harness.REGISTRY.replace("capacity_gb: [1]", "capacity_gb: [0.00002]"))
    later = with_registry(
        tmp_path,
        harness.REGISTRY.replace("capacity_gb: [1]", "capacity_gb: [0, 0.00001, 0.00002]").replace("1024", "512"),
    )
    compared: set[float] = set()
    for known, low in ((first, 0), (first, 300), (later, 600)):
        with run_worker(known=known, snapshot_seconds=0.05) as worker:
            worker.wait_until(harness.caught_up(publish(settings, requests[low : low + 300])))
            status = worker.wait_until(at_rest)
            compared |= assert_counters_are_those_of_a_query(status, settings, layout.partitions)
            assert worker.metric("litehit_lane_aborts_total") >= 1
            assert_metrics_show_the_counters(worker, status)
    assert compared == {0, 0.00001, 0.00002}
    assert tried() > 3


def test_a_retry_after_a_restart_is_still_a_repeat(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, snapshots: Snapshots
) -> None:
    """The traces that are remembered come from a snapshot, and from the records that are replayed after it."""
    requests = harness.make_requests(300, seed=57)
    work_through(run_worker, settings, requests[:100], repeats_window=1000)
    second = ends(work_through(run_worker, settings, [*requests[100:200], *requests[50:150]], repeats_window=1000))
    for partition in second:
        open_store(settings.store).delete(snapshots.files(partition)[0].path)  # as after a crash before it was written
    with run_worker(repeats_window=1000) as worker:
        status = worker.wait_until(at_rest)
        assert sum(lane.replayed for lane in status.lanes) == 200
        places = publish(settings, [*requests[:200], *requests[200:]])
        worker.wait_until(harness.caught_up(places))
        ignored = [
            worker.metric("litehit_lane_ignored_total", partition=str(partition), kind="repeat")
            for partition in range(layout.partitions)
        ]
    assert sum(ignored) == 200
    assert_each_fact_once(settings, layout, requests, known)
