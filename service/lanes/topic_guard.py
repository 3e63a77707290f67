"""Holds a worker to the requests topic that it began with."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from confluent_kafka import KafkaException

from litehit.counted import counted
from service.lanes.committed import RequestsTopic
from service.topic_watch import TopicWatch

log = structlog.get_logger()

_ASK_AGAIN_SECONDS = 1.0


class TopicGuard:
    """Tells of a topic that was recreated or got partitions while its lanes run.

    A consumer goes on with the new topic of an old name as if it were the old one, and a tap spreads instances anew
    over added partitions: either way records would meet caches that are not of their history.

    Args:
        topic: as it was found at start.
        watch: tells what it is now; None where it can't change.
        stops_within: waits so many seconds for the process to be asked to stop; whether it was.
    """

    def __init__(self, topic: RequestsTopic, watch: TopicWatch | None, stops_within: Callable[[float], bool]) -> None:
        self._topic = topic
        self._watch = watch
        self._stops_within = stops_within

    def fault(self) -> str | None:
        """Why nothing that was polled before may be processed; None where it may. Waits for Kafka's answer."""
        if self._watch is None:
            return None
        pause = 0.0
        while not self._stops_within(pause):
            try:
                found = self._watch.look()
            except KafkaException as error:
                log.warning("topic_not_known", topic=self._topic.name, error=error.args[0].str())
                pause = _ASK_AGAIN_SECONDS  # some errors are told at once
                continue
            if found is None:
                return "the topic was deleted while it was read; restart when it is there again"
            if found.generation != self._topic.generation:
                return (
                    f"the topic was recreated while it was read: its generation is {found.generation}, and was "
                    f"{self._topic.generation} at the start; restart to read the new one from its start"
                )
            if found.partitions != self._topic.partitions:
                return (
                    f"the topic has {counted(found.partitions, 'partition')}, and had {self._topic.partitions} "
                    f"at the start: instances may have moved to others than those that hold their caches; restart, and "
                    f"choose then"
                )
            return None
        return "stopped before Kafka told whether the topic is still the same"
