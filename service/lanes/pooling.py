"""Requests that go to other instances than they name need a topic whose requests have one order."""

from __future__ import annotations

from litehit.errors import OptionError
from litehit.registry import Registry
from service.lanes.committed import RequestsTopic
from service.settings import Settings


def check_pooling(settings: Settings, topic: RequestsTopic, registry: Registry) -> None:
    """Refuse settings that send requests to other instances than they name, where that can't be exact.

    Raises:
        OptionError: the topic has several partitions, or `fanout_all_instances` finds no instance registered exactly.
        UnknownInstance: of `override_instance_id`.
    """
    routing = settings.routing
    if not routing:
        return
    if topic.partitions > 1:
        given = (
            "fanout_all_instances"
            if routing.fanout_all_instances
            else f"override_instance_id {routing.override_instance_id!r}"
        )
        raise OptionError(
            f"{given} needs a requests topic of one partition, but {topic.name} has {topic.partitions}: each partition "
            f"has a cache of its own and no order with the others, so that an instance pooled over them would be the "
            f"sum of {topic.partitions} caches instead of one; publish to a topic of one partition "
            f"(LITEHIT_REQUESTS_TOPIC), use litehit replay, or, to analyse an instance in several ways, give it "
            f"variants in the registry, which work with any number of partitions"
        )
    routing.pooled(registry)
