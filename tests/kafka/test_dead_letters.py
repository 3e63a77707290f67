"""Dead letters on a real Kafka: limits, records too large for their topic, and publishing again exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from litehit.registry import Registry
from schemas.dead_letter import Reason
from service.dead_letter_replay import REPLAY_GROUP, DeadLetterReplay, Replayed, ReplayPosition
from service.errors import BatchAborted, Fenced, ReplayRefused
from service.lanes.exactly_once import ExactlyOnce
from service.lanes.membership import NoMember
from service.lanes.status import LaneState
from service.settings import Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness
from tests.cli_harness import litehit

Run = Callable[..., harness.RunningWorker]
Records = Sequence[tuple[str, bytes | None]]


def limit_messages(settings: Settings, topic: str, max_bytes: int) -> None:
    assert settings.bootstrap is not None
    entry = ConfigEntry("max.message.bytes", str(max_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    with AdminClient({"bootstrap.servers": settings.bootstrap, "log_level": 4}) as admin:
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)


def send(settings: Settings, records: Records) -> list[tuple[int, int]]:
    assert settings.bootstrap is not None
    return harness.send(settings.bootstrap, settings.requests_topic, records)


def letters(settings: Settings) -> list[harness.Read]:
    assert settings.bootstrap is not None
    return harness.read_topic(settings.bootstrap, settings.dead_letters_topic, 3)


def stopped(worker: harness.RunningWorker) -> str:
    """Why the one lane that stopped did."""
    status = worker.wait_until(lambda now: any(lane.state is LaneState.STOPPED for lane in now.lanes))
    (lane,) = [lane for lane in status.lanes if lane.state is LaneState.STOPPED]
    return lane.error or ""


def test_a_topic_that_takes_less_than_the_setting_stops_the_lane_with_what_to_do(
    settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    limit_messages(settings, settings.dead_letters_topic, 10_000)
    value = b"x" * 20_000
    with run_worker() as worker:
        ((partition, _),) = send(settings, [("chat-a", value)])
        error = stopped(worker)
        assert f"{settings.dead_letters_topic}/{partition}" in error
        assert "max.message.bytes" in error
        assert "LITEHIT_DEAD_LETTER_MAX_BYTES" in error
    assert letters(settings) == []
    with run_worker(dead_letter_max_bytes=9_000) as worker:
        worker.wait_until(lambda now: sum(lane.counts.consumed for lane in now.lanes) == 1)
    (letter,) = letters(settings)
    assert letter.header("litehit-truncated") == "20000"
    assert letter.reason == Reason.MALFORMED_JSON
    assert 8_000 < len(letter.value or b"") < 9_000


def test_dead_letters_that_fit_one_by_one_fit_together(
    settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    limit_messages(settings, settings.dead_letters_topic, 10_000)
    with run_worker(dead_letter_max_bytes=9_000) as worker:
        places = send(settings, [("chat-a", b"x" * size) for size in (20_000, 2_900, 2_900, 2_900, 2_900) * 8])
        worker.wait_until(harness.caught_up(places))
    assert len(letters(settings)) == 40


def good(count: int, seed: int = 51) -> Records:
    return [(one.instance_id, harness.event(one)) for one in harness.make_requests(count, seed, ["chat-a"])]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"dead_letter_max_consecutive": 20}, "21 dead letters in a row"),
        (
            {"dead_letter_max_share": 0.25, "dead_letter_window": 80},
            "21 dead letters among the last 80 requests",
        ),
    ],
)
def test_too_many_dead_letters_stop_their_lane_until_the_limit_is_raised(
    settings: Settings, layout: TopicLayout, run_worker: Run, known: Registry, limits: dict[str, float], words: str
) -> None:
    before, poison, after = good(100), [("chat-a", b"{")] * 60, good(40, seed=52)
    places = send(settings, before)
    with run_worker(**limits) as worker:
        worker.wait_until(harness.caught_up(places))
        send(settings, [*poison, *after])
        error = stopped(worker)
        assert f"{settings.requests_topic}/{places[0][0]}/120: {words}" in error
        assert "is not valid JSON" in error
    # Nothing of the batch that went too far was handed over, and a restart does not get past it.
    told = len(letters(settings))
    assert told <= 20
    with run_worker(**limits) as worker:
        assert "dead letters" in stopped(worker)
    assert len(letters(settings)) == told
    with run_worker(dead_letter_max_consecutive=0, dead_letter_max_share=1.0) as worker:
        worker.wait_until(harness.caught_up([(places[0][0], 199)]))
    assert [letter.source.rpartition("/")[2] for letter in letters(settings)] == [str(at) for at in range(100, 160)]
    assert settings.bootstrap is not None
    facts = harness.read_topic(settings.bootstrap, settings.facts_topic, 3)
    requests = [*harness.make_requests(100, 51, ["chat-a"]), *harness.make_requests(40, 52, ["chat-a"])]
    assert [fact.value for fact in facts] == harness.straight_facts(requests, known)["chat-a"]


ALL = frozenset(Reason)
UNKNOWN: Records = [("nobody", harness.event(harness.make_requests(1, 53, ["nobody"])[0]))]
BROKEN: Records = [("chat-b", b"{"), ("chat-b", None)]


def poisoned(settings: Settings, run_worker: Run) -> None:
    """Ten dead letters: unknown instances, broken JSON, tombstones and one that is cut."""
    assert settings.bootstrap is not None
    records = [*4 * [*UNKNOWN], *2 * [*BROKEN], ("chat-b", b"{"), ("chat-c", b"x" * 50_000)]
    headers = {"headers": [("tap", b"7"), ("litehit-source", b"forged")]}
    producer = Producer({"bootstrap.servers": settings.bootstrap, "partitioner": "murmur2_random", "log_level": 4})
    for key, value in records:
        producer.produce(settings.requests_topic, value, key, timestamp=1_700_000_000_000, **headers)  # type: ignore[arg-type]
    assert producer.flush(30) == 0
    producer.close()
    with run_worker(dead_letter_max_bytes=10_000) as worker:
        worker.wait_until(lambda now: sum(lane.counts.consumed for lane in now.lanes) == len(records))


def replay(settings: Settings, reasons: Collection[Reason] = ALL, *, dry: bool = False) -> Replayed:
    assert settings.bootstrap is not None
    return DeadLetterReplay(settings, settings.bootstrap, 3).run(reasons, dry=dry)


def requests(settings: Settings) -> list[harness.Read]:
    assert settings.bootstrap is not None
    return harness.read_topic(settings.bootstrap, settings.requests_topic, 3)


def published(settings: Settings, before: list[harness.Read]) -> list[harness.Read]:
    """What came to the requests topic since."""
    return [record for record in requests(settings) if record not in before]


def test_each_dead_letter_is_published_again_once_as_it_came(
    settings: Settings, layout: TopicLayout, run_worker: Run
) -> None:
    poisoned(settings, run_worker)
    before = requests(settings)
    unknown = {Reason.UNKNOWN_INSTANCE}
    assert replay(settings, dry=True).published == Counter(
        {Reason.UNKNOWN_INSTANCE: 4, Reason.MALFORMED_JSON: 3, Reason.EMPTY_VALUE: 2}
    )
    assert published(settings, before) == []

    assert replay(settings, unknown) == Replayed(Counter({Reason.UNKNOWN_INSTANCE: 4}))
    assert replay(settings, unknown).published == Counter()
    rest = replay(settings)
    assert rest == Replayed(Counter({Reason.MALFORMED_JSON: 3, Reason.EMPTY_VALUE: 2}), cut=1)
    assert replay(settings) == Replayed()

    again = Counter((one.partition, one.key, one.value, one.headers) for one in published(settings, before))
    whole = [one for one in before if len(one.value or b"") < 50_000]
    assert again == Counter((one.partition, one.key, one.value, one.headers) for one in whole)
    assert all(headers == (("tap", b"7"), ("litehit-source", b"forged")) for *_, headers in again)

    # What is a dead letter again is published again, once.
    with run_worker() as worker:
        worker.wait_until(lambda now: sum(lane.counts.consumed for lane in now.lanes) == 9)
    assert replay(settings, unknown).published == {Reason.UNKNOWN_INSTANCE: 4}
    assert replay(settings, unknown).published == {}


def test_a_replay_that_fails_publishes_each_dead_letter_once_all_the_same(
    settings: Settings, layout: TopicLayout, run_worker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned(settings, run_worker)
    before = requests(settings)
    monkeypatch.setattr("service.dead_letter_replay._BATCH_RECORDS", 2)
    metadata = NoMember.metadata
    transactions = 0

    def sometimes(identity: NoMember) -> object:
        nonlocal transactions
        transactions += 1
        if transactions % 2 == 0:
            raise BatchAborted("planted")
        return metadata(identity)

    monkeypatch.setattr(NoMember, "metadata", sometimes)
    failures = 0
    while True:
        try:
            replay(settings)
            break
        except BatchAborted:
            failures += 1
    assert failures >= 2
    again = Counter((one.partition, one.key, one.value) for one in published(settings, before))
    whole = [one for one in before if len(one.value or b"") < 50_000]
    assert again == Counter((one.partition, one.key, one.value) for one in whole)


def test_a_second_replay_fences_the_first(
    settings: Settings, layout: TopicLayout, run_worker: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned(settings, run_worker)
    before = requests(settings)
    commit = ExactlyOnce.commit

    def overtaken(transaction: ExactlyOnce, batch: object) -> None:
        monkeypatch.setattr(ExactlyOnce, "commit", commit)
        assert sum(replay(settings).published.values()) == 9
        commit(transaction, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(ExactlyOnce, "commit", overtaken)
    with pytest.raises(Fenced):
        replay(settings)
    assert len(published(settings, before)) == 9


@pytest.mark.parametrize("position", [ReplayPosition(7), ReplayPosition(0, {Reason.KEY_TYPE: 7})])
def test_a_position_behind_the_end_is_refused(
    settings: Settings, layout: TopicLayout, position: ReplayPosition
) -> None:
    assert settings.bootstrap is not None
    consumer = Consumer({"bootstrap.servers": settings.bootstrap, "group.id": REPLAY_GROUP})
    place = position.committed()
    consumer.commit(
        offsets=[TopicPartition(settings.dead_letters_topic, 1, place.offset, place.metadata)], asynchronous=False
    )
    consumer.close()
    with pytest.raises(ReplayRefused, match=rf"{settings.dead_letters_topic}/1: .* up to offset 7, but it ends at 0"):
        replay(settings)


def test_the_command_line_lists_and_publishes(settings: Settings, layout: TopicLayout, run_worker: Run) -> None:
    poisoned(settings, run_worker)
    assert settings.bootstrap is not None
    variables = {
        f"LITEHIT_{name.upper()}": str(getattr(settings, name))
        for name in ("bootstrap", "requests_topic", "facts_topic", "dead_letters_topic", "group_id")
    }

    def run(*arguments: str, check: bool = True) -> tuple[list[str], str]:
        done = litehit("dead-letters", *arguments, settings=variables, check=check)
        return done.stdout.decode().splitlines(), done.stderr.decode()

    lines, _ = run("show", "--limit", "3")
    assert len(lines) == 4
    assert lines[-1] == "3 of 10 dead letters: 4 malformed-json, 4 unknown-instance, 2 empty-value"
    shown, summary = run("show", "--json", "--reason", "unknown-instance", "--reason", "malformed-json")
    documents = [json.loads(line) for line in shown]
    assert summary == "8 of 8 dead letters: 4 malformed-json, 4 unknown-instance\n"
    by_source = {(letter.headers[0][1] or b"").decode(): letter for letter in letters(settings)}
    for document in documents:
        letter = by_source[document["source"]]
        assert document["reason"] == letter.reason
        assert document["error"] == letter.header("litehit-error")
        assert (document["key"], document["value"]) == ((letter.key or b"").decode(), (letter.value or b"").decode())
        assert document["headers"] == [["tap", "7"], ["litehit-source", "forged"]]
    assert [document["truncated"] for document in documents if document["truncated"]] == [50_000]
    partition = documents[0]["partition"]
    lines, _ = run("show", "--partition", str(partition))
    assert len(lines) - 1 == sum(letter.partition == partition for letter in letters(settings))
    assert "is none of the 3" in run("show", "--partition", "3", check=False)[1]
    assert "is no reason" in run("show", "--reason", "bad", check=False)[1]

    assert run("replay", "--dry-run", "--reason", "empty-value")[0] == [
        f"would publish 2 dead letters to {settings.requests_topic}: 2 empty-value"
    ]
    lines, warning = run("replay")
    assert lines[0].startswith(f"published 9 dead letters to {settings.requests_topic}: 4 unknown-instance, 3 malf")
    assert "warning: 1 dead letter can't be published again, being cut" in warning
    assert run("replay")[0] == [f"published 0 dead letters to {settings.requests_topic}"]
