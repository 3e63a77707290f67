"""What is sent to a topic at most, and what to do where the topic takes less."""

from __future__ import annotations

from confluent_kafka import KafkaError

MAX_RECORD_BYTES = 16 * 2**20
"""What a producer of ours sends at most; below it the topic's own limit decides."""

REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_MSG,
    }
)
"""Codes that say of a record: Kafka has not taken it, and will not however often it is sent."""


def how_to_raise(topic: str, size: int) -> str:
    """What to do about a record of `size` bytes that a topic does not take."""
    return (
        f"raise the topic's max.message.bytes above that (kafka-configs.sh --alter --entity-type topics "
        f"--entity-name {topic} --add-config max.message.bytes={2 * size}; at most {MAX_RECORD_BYTES:,} are sent)"
    )
