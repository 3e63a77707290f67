"""What holds lanes to the topic that they began with, while Kafka answers and while it does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from service.lanes.committed import RequestsTopic
from service.lanes.topic_guard import TopicGuard
from service.topics import FoundTopic

TOPIC = RequestsTopic("requests", "a", 4)
SILENCE = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))


def guard(
    answers: Iterable[FoundTopic | KafkaException | None], pauses: list[float], stop_after: int = 9
) -> TopicGuard:
    left = iter(answers)

    class Watch:
        def look(self) -> FoundTopic | None:
            answer = next(left)
            if isinstance(answer, KafkaException):
                raise answer
            return answer

    def stops_within(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > stop_after

    watch: Any = Watch()
    return TopicGuard(TOPIC, watch, stops_within)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (FoundTopic("a", 4), None),
        (None, "the topic was deleted"),
        (FoundTopic("b", 4), "its generation is b, and was a at the start"),
        (FoundTopic("a", 6), "the topic has 6 partitions, and had 4 at the start"),
    ],
)
def test_an_answer_says_whether_it_is_the_same(found: FoundTopic | None, told: str | None) -> None:
    fault = guard([found], []).fault()
    assert fault is None if told is None else told in str(fault)


def test_kafka_is_asked_again_with_pauses_until_it_answers() -> None:
    pauses: list[float] = []
    assert guard([SILENCE, SILENCE, FoundTopic("a", 4)], pauses).fault() is None
    assert pauses == [0.0, 1.0, 1.0]


def test_a_process_that_is_stopped_waits_no_longer_and_processes_nothing() -> None:
    pauses: list[float] = []
    assert "stopped before Kafka told" in str(guard([SILENCE] * 3, pauses, stop_after=2).fault())
    assert len(pauses) == 3


def test_without_a_watch_there_is_nothing_to_ask() -> None:
    assert TopicGuard(TOPIC, None, lambda _: True).fault() is None
