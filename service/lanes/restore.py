"""From where a lane's caches are rebuilt, or why they can't be."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import CannotRestore


@dataclass(frozen=True, slots=True)
class Committed:
    """What the group has committed for a partition.

    Attributes:
        offset: the next offset to process; None where nothing was ever committed.
        generation: the topic's generation the offset belongs to; None where the commit does not say.
    """

    offset: int | None
    generation: str | None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """How a lane gets warm.

    Attributes:
        start: the first offset to read.
        target: records below it are replayed with their output suppressed; from it on they give facts.
    """

    start: int
    target: int


def plan_restore(source: str, generation: str, committed: Committed, low: int, end: int) -> RestorePlan:
    """Plan the replay of a partition from the start of its log to the committed offset.

    Args:
        source: `<topic>/<partition>`, for messages.
        generation: the topic's present generation.
        committed: what the group has committed.
        low: first offset the log still holds.
        end: the log's last stable offset.

    Raises:
        CannotRestore: requests that the caches depend on are gone, or the offset belongs to another topic.
    """
    offset = committed.offset
    if offset is not None and committed.generation not in (None, generation):
        raise CannotRestore(
            f"{source}: the committed offset {offset} belongs to generation {committed.generation} of the topic, "
            f"which is now {generation}: the topic was recreated; use a new group_id (LITEHIT_GROUP_ID) to read "
            f"it from its start"
        )
    if offset is not None and offset > end:
        raise CannotRestore(
            f"{source}: the committed offset {offset} lies beyond the end of the log, {end}: the topic was "
            f"recreated or has lost records; use a new group_id (LITEHIT_GROUP_ID) to read it from its start"
        )
    if low > 0:
        raise CannotRestore(
            f"{source}: the requests before offset {low} have expired, so the caches "
            f"{'at the committed offset ' + str(offset) if offset is not None else 'there'} can't be rebuilt and the "
            f"lane would start cold; keep requests longer (retention.ms and retention.bytes of the topic) and publish "
            f"them again to a new topic (LITEHIT_REQUESTS_TOPIC)"
        )
    return RestorePlan(start=low, target=offset or 0)
