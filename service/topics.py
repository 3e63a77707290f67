"""The topics at start-up: there, or made, and fitting each other; otherwise an error that says what to run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic, TopicDescription  # type: ignore[attr-defined]

from litehit.counted import counted
from service.embedded import find_embedded
from service.errors import TopicsError
from service.settings import Settings

log = structlog.get_logger()

EMBEDDED_PARTITIONS = 4
"""Partitions of every topic on the embedded broker; it can't be told another number."""

_ASK_SECONDS = 15.0
_APPEAR_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """The topics as they were found.

    Attributes:
        partitions: of each of the three topics.
        requests_generation, facts_generation: within which offsets mean something.
    """

    partitions: int
    requests_generation: str
    facts_generation: str


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic on Kafka.

    Attributes:
        generation: within which offsets mean something.
        partitions: how many.
    """

    generation: str
    partitions: int


def find_topic(admin: AdminClient, topic: str, seconds: float = _ASK_SECONDS) -> FoundTopic | None:
    """A topic as it is now; None where there is none.

    Raises:
        KafkaException: the broker does not answer.
    """
    found = _describe(admin, (topic,), seconds).get(topic)
    return None if found is None else FoundTopic(_generation(found), len(found.partitions))


def prepare_topics(settings: Settings, bootstrap: str, embedded_generation: str | None = None) -> TopicLayout:
    """Check the topics, creating absent ones where that is allowed.

    Args:
        settings: names, and what to create.
        bootstrap: Kafka's bootstrap servers.
        embedded_generation: the embedded broker's generation; None on Kafka.

    Raises:
        TopicsError: a topic is missing or has the wrong number of partitions, or the broker does not answer.
    """
    try:
        with AdminClient(settings.client_config(bootstrap)) as admin:
            if embedded_generation is not None:
                return _on_embedded(settings, admin, embedded_generation)
            return _on_kafka(settings, admin, bootstrap)
    except KafkaException as error:
        raise TopicsError(
            f"{bootstrap}: {error.args[0].str()}; see that Kafka runs there and may be reached"
        ) from error


def find_topics(settings: Settings, bootstrap: str) -> TopicLayout:
    """The topics of a service that is there, for a command beside it; errors are those of `prepare_topics`."""
    generation = find_embedded(Path(settings.store)).generation if settings.embedded else None
    return prepare_topics(settings.model_copy(update={"create_topics": False}), bootstrap, generation)


def _on_embedded(settings: Settings, admin: AdminClient, generation: str) -> TopicLayout:
    if settings.partitions != EMBEDDED_PARTITIONS:
        raise TopicsError(
            f"partitions is {settings.partitions}, but the embedded broker's topics always have {EMBEDDED_PARTITIONS}; "
            f"leave the setting out (LITEHIT_PARTITIONS), or use Kafka (--bootstrap)"
        )
    for topic in settings.topics:
        # Its way to create a topic: the first question for it.
        found = len(admin.list_topics(topic, timeout=_ASK_SECONDS).topics[topic].partitions)
        if found != EMBEDDED_PARTITIONS:
            raise TopicsError(f"the embedded broker made topic {topic} with {counted(found, 'partition')}")
    return TopicLayout(EMBEDDED_PARTITIONS, generation, generation)


def _on_kafka(settings: Settings, admin: AdminClient, bootstrap: str) -> TopicLayout:
    found = _describe(admin, settings.topics)
    if settings.create_topics:
        # The requests topic first: the others follow its number of partitions, whoever made it.
        if settings.requests_topic not in found:
            _create(admin, [settings.requests_topic], settings.partitions, settings.replication_factor)
            found |= _await_topics(admin, (settings.requests_topic,))
        missing = [topic for topic in settings.topics if topic not in found]
        if missing:
            _create(admin, missing, len(found[settings.requests_topic].partitions), settings.replication_factor)
            found |= _await_topics(admin, tuple(missing))
    _refuse_missing(settings, found, bootstrap)
    partitions = len(found[settings.requests_topic].partitions)
    for topic in settings.topics:
        _check_partitions(topic, len(found[topic].partitions), settings.requests_topic, partitions, bootstrap)
    return TopicLayout(
        partitions, _generation(found[settings.requests_topic]), _generation(found[settings.facts_topic])
    )


def _generation(topic: TopicDescription) -> str:
    # As Kafka's own tools write it, and fit for a path; librdkafka writes it with / and +.
    return str(topic.topic_id).translate(str.maketrans("/+", "_-"))


def _refuse_missing(settings: Settings, found: dict[str, TopicDescription], bootstrap: str) -> None:
    missing = [topic for topic in settings.topics if topic not in found]
    if not missing:
        return
    requests = found.get(settings.requests_topic)
    partitions = len(requests.partitions) if requests is not None else settings.partitions
    commands = "; ".join(
        f"kafka-topics.sh --bootstrap-server {bootstrap} --create --topic {topic} --partitions {partitions}"
        for topic in missing
    )
    raise TopicsError(
        f"{bootstrap} has no topic {', '.join(missing)}; run: {commands}; or allow the service to create it "
        f"(LITEHIT_CREATE_TOPICS=true)"
    )


def _check_partitions(topic: str, count: int, requests_topic: str, wanted: int, bootstrap: str) -> None:
    if count == wanted:
        return
    tool = f"kafka-topics.sh --bootstrap-server {bootstrap}"
    remedy = (
        f"run: {tool} --alter --topic {topic} --partitions {wanted}"
        if count < wanted
        else f"partitions can't be taken away, so name another topic, or, if its records may be lost, run: "
        f"{tool} --delete --topic {topic} && {tool} --create --topic {topic} --partitions {wanted}"
    )
    raise TopicsError(
        f"topic {topic} has {counted(count, 'partition')}, {requests_topic} has {wanted}; partition p of the one "
        f"belongs to partition p of the other; {remedy}"
    )


def _describe(
    admin: AdminClient, topics: tuple[str, ...], seconds: float = _ASK_SECONDS
) -> dict[str, TopicDescription]:
    """The topics that exist."""
    found = {}
    for topic, answer in admin.describe_topics(TopicCollection(list(topics)), request_timeout=seconds).items():
        try:
            found[topic] = answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def _create(admin: AdminClient, topics: list[str], partitions: int, replication_factor: int) -> None:
    brokers = len(admin.list_topics(timeout=_ASK_SECONDS).brokers)
    factor = min(replication_factor, brokers)
    if factor < replication_factor:
        log.warning("replication_factor_lowered", wanted=replication_factor, brokers=brokers)
    wanted = [NewTopic(topic, num_partitions=partitions, replication_factor=factor) for topic in topics]
    for topic, answer in admin.create_topics(wanted, request_timeout=_ASK_SECONDS).items():
        try:
            answer.result()
        except KafkaException as error:
            # Another process that starts at the same time may have been quicker.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        else:
            log.info("topic_created", topic=topic, partitions=partitions, replication_factor=factor)


def _await_topics(admin: AdminClient, topics: tuple[str, ...]) -> dict[str, TopicDescription]:
    """The topics once every broker that may be asked knows them."""
    deadline = time.monotonic() + _APPEAR_SECONDS
    while len(found := _describe(admin, topics)) < len(topics):
        if time.monotonic() > deadline:
            absent = [topic for topic in topics if topic not in found]
            raise TopicsError(f"topic {', '.join(absent)} was created but has not appeared in {_APPEAR_SECONDS:g} s")
        time.sleep(0.1)
    return found
