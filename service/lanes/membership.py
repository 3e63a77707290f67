"""Who this worker is in its consumer group, vouched for at the moment offsets are handed over."""

from __future__ import annotations

from typing import Any, Protocol

from confluent_kafka import Consumer

from service.errors import BatchAborted


class GroupIdentity(Protocol):
    """Under which a transaction commits a group's offsets."""

    def metadata(self) -> Any:
        """The group metadata.

        Raises:
            BatchAborted: there is no identity any more.
        """


class NoMember:
    """The identity of a program that uses a group only to keep offsets; Kafka refuses it where a group has members."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def metadata(self) -> Any:
        """See `GroupIdentity`."""
        return self._consumer.consumer_group_metadata()


class Membership:
    """Guards against committing under no identity.

    A consumer that the group expelled has no member id until the application polls again; a broker takes offsets
    from nobody in particular without asking whose partitions they are. So metadata counts only while the member is
    the one that got the partitions.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._member: str | None = None

    def joined(self) -> None:
        """Note who this is, when partitions are assigned."""
        self._member = self._consumer.memberid()

    def metadata(self) -> Any:
        """The group metadata that fences a zombie's offsets.

        Raises:
            BatchAborted: this is no longer the member that got the partitions.
        """
        metadata = self._consumer.consumer_group_metadata()
        # Asked after the metadata was taken: an id that is still the old one was the old one then, too.
        member = self._consumer.memberid()
        if not member or member != self._member:
            raise BatchAborted(f"group member {self._member!r} was expelled from its group and is now {member!r}")
        return metadata
