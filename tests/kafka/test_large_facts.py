"""A fact beyond what its topic takes stops its lane alone and says what to raise; raised, it goes on to an answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litehit.request import Request
from service.event_json import event_json
from service.lanes.status import LaneState
from service.settings import Settings
from service.topics import TopicLayout
from tests import lanes_harness as harness
from tests.kafka.test_dead_letters import limit_messages, send, stopped

KEYS = 120_000
LIMIT = 1_048_588
"""Kafka's own."""


def long_curve(instance_id: str) -> list[tuple[str, bytes]]:
    """Requests that every topic takes, the last of them with a curve of as many segments as it has keys.

    The first two leave each key of the last one behind another key, which no prompt does so quickly: a real history
    gets there by many short prompts.
    """
    keys = np.arange(2 * KEYS)
    prompts = (keys[KEYS:], keys[:KEYS], keys[::2])
    requests = [
        Request(instance_id, f"long-{number}", number + 1, own, harness.BLOCK_TOKENS * len(own))
        for number, own in enumerate(prompts)
    ]
    records = [(instance_id, event_json(request)) for request in requests]
    assert all(len(value) < LIMIT for _, value in records)
    return records


def facts_of(settings: Settings) -> list[harness.Read]:
    assert settings.bootstrap is not None
    return harness.read_topic(settings.bootstrap, settings.facts_topic, settings.partitions)


def test_a_fact_beyond_its_topic_stops_its_lane_until_the_topic_takes_it(
    settings: Settings, layout: TopicLayout, run_worker: Callable[..., harness.RunningWorker]
) -> None:
    long = send(settings, long_curve("chat-a"))
    others = [one for one in harness.make_requests(200, seed=7) if one.instance_id != "chat-a"]
    places = send(settings, [(one.instance_id, harness.event(one)) for one in others])
    (partition, offset) = long[-1]
    undisturbed = [place for place in places if place[0] != partition]
    assert undisturbed
    with run_worker() as worker:
        error = stopped(worker)
        assert f"{settings.requests_topic}/{partition}/{offset}" in error
        assert f"{settings.facts_topic}/{partition}" in error
        assert f"--entity-name {settings.facts_topic} --add-config max.message.bytes=" in error
        status = worker.wait_until(harness.caught_up(undisturbed))
        assert [lane.partition for lane in status.lanes if lane.state is LaneState.STOPPED] == [partition]
    assert max(len(fact.value or b"") for fact in facts_of(settings)) < LIMIT
    assert settings.bootstrap is not None
    assert harness.read_topic(settings.bootstrap, settings.dead_letters_topic, settings.partitions) == []

    limit_messages(settings, settings.facts_topic, 4 * 2**20)
    with run_worker() as worker:
        worker.wait_until(harness.caught_up(long + places))
    facts = facts_of(settings)
    assert len(facts) == len(long) + len(others)
    assert max(len(fact.value or b"") for fact in facts) > LIMIT
