"""Every error the service raises on purpose.

ServiceError
├── EmbeddedBrokerError    the embedded broker can't be started or found
├── TopicsError            the topics are not as the roles need them; says what to run
├── PublishError           publishing can't go on
│   └── PublishInterrupted it was told to stop before its end
├── TopicUnreadable        a topic can't be read from one place to another
├── ReplayRefused          dead letters can't be published again from where that ended
├── Difference             what a topic or the store holds is not what the requests give
├── OutputClosed           whoever reads the output does not read on
├── AddressUnusable        the HTTP API can't listen where it was told to
├── ExtraMissing           a package is not installed that only some need
├── ArchiveError           the archive's errors; their tree is in service/archive/errors.py
├── SnapshotDamaged        a snapshot file can't be used
├── RegistryNotApplicable  a registry file is not that of the caches in a store
├── CannotRestore          a lane's caches can't be rebuilt; the lane stops
├── CoreChanged            the registry's configuration is not that of a lane's caches; the lane stops
├── NothingToReset         a lane can't be reset to what there is not
├── TooManyDeadLetters     a lane's dead letters are no single bad records; the lane stops
├── LaneFailed             a fault of the program in a lane, which halts
├── BatchAborted           a micro-batch was not handed over; its lanes must be rebuilt
│   └── Undeliverable      ... because Kafka refuses one of its records for good
└── ProducerFailed         the producer is of no more use; the process must end
    ├── Fenced             ... because a newer process uses its transactional id
    └── TransactionUnknown ... because Kafka has not begun the transaction that was to end
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litehit.errors import LiteHitError

if TYPE_CHECKING:
    from litehit.config_changes import ConfigChange

_SHOWN = 300  # of a sentence that may quote a whole record


class ServiceError(LiteHitError):
    """Base of the service's errors."""


class EmbeddedBrokerError(ServiceError):
    """The embedded broker can't be started or found."""


class TopicsError(ServiceError):
    """The topics are not as the roles need them; the message says what to run."""


class PublishError(ServiceError):
    """Publishing can't go on."""


class PublishInterrupted(PublishError):
    """Publishing was told to stop before its end."""


class TopicUnreadable(ServiceError):
    """A topic can't be read from one place to another."""


class ReplayRefused(ServiceError):
    """Dead letters can't be published again from where that ended: the topic is another now."""

    def __init__(self, topic: str, partition: int, position: int, end: int, group: str) -> None:
        super().__init__(
            f"{topic}/{partition}: its dead letters are published again up to offset {position}, but it ends at {end}: "
            f"it was recreated or lost records; delete the group {group} (kafka-consumer-groups.sh --delete --group "
            f"{group}), and all that are there now are published again"
        )


class Difference(ServiceError):
    """What a topic or the store holds is not what the requests give, or not what it must be."""


class OutputClosed(ServiceError):
    """Whoever reads the output does not read on."""

    def __init__(self) -> None:
        super().__init__("standard output: its reader went away before the end")


class ExtraMissing(ServiceError):
    """A package is not installed that only some need."""

    def __init__(self, option: str, package: str, extra: str) -> None:
        super().__init__(f"{option} needs {package}, which is not installed; run: pip install 'litehit[{extra}]'")


class AddressUnusable(ServiceError):
    """The HTTP API can't listen where it was told to."""

    def __init__(self, host: str, port: int, reason: OSError) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"can't listen on host {host!r}, port {port}: {reason.strerror or reason}; "
            f"choose another --host or --port (0 picks a free port)"
        )


class SnapshotDamaged(ServiceError):
    """A snapshot file is damaged, or is not what its name says.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class CannotRestore(ServiceError):
    """A lane's caches can't be rebuilt up to its committed offset."""


class CoreChanged(ServiceError):
    """The registry's configuration is not that of a lane's caches.

    Attributes:
        changes: what differs.
    """

    def __init__(self, changes: Sequence[ConfigChange]) -> None:
        self.changes = tuple(changes)
        super().__init__("; ".join(map(str, changes)))


class RegistryNotApplicable(ServiceError):
    """Lanes would stop under a registry file, since it is not that of their caches.

    Args:
        file: its name.
        changed: snapshots whose caches are of other settings.
        lacking: snapshots that have no cache of what is new.
    """

    def __init__(self, file: str, changed: Sequence[str], lacking: Sequence[str]) -> None:
        remedies = []
        if changed:
            remedies.append(
                f"for its differences from {', '.join(changed)}: take those back, or register the instances in-band "
                f"with reset: true while the lanes still run"
            )
        if lacking:
            remedies.append(
                f"for what is new and not in {', '.join(lacking)}: take it out, or restart and let it begin empty with "
                f"`litehit lanes reset --partition P --to snapshot`"
            )
        super().__init__(f"{file}: lanes would stop instead of going on under it, {'; and '.join(remedies)}")


class NothingToReset(ServiceError):
    """A lane can't be reset to a snapshot that there is not."""


class TooManyDeadLetters(ServiceError):
    """So many of a lane's records became dead letters that something else than the records must be wrong.

    Attributes:
        source: the record that was one too many.
    """

    def __init__(self, source: str, exceeded: str, sentence: str) -> None:
        self.source = source
        super().__init__(
            f"{source}: {exceeded}; nothing of its batch was handed over; mend what the tap sends or how its instances "
            f"are registered, or raise the limit, and restart; this record: {sentence[:_SHOWN]}"
        )


class LaneFailed(ServiceError):
    """A fault of ours in a lane: reading its records, processing them, or rendering its facts.

    Attributes:
        first: topic, partition and offset of the first of the records.
        error: what was raised.
    """

    def __init__(self, first: str, error: Exception) -> None:
        self.first = first
        self.error = error
        super().__init__(f"{type(error).__name__} at or after {first}: {error}")


class BatchAborted(ServiceError):
    """A micro-batch was not handed over: the lanes in memory are ahead of the offsets and must be rebuilt."""


class Undeliverable(BatchAborted):
    """Kafka refuses a record for good, so that trying its batch again can't help.

    Attributes:
        topic: which does not take it.
        partition: the lane that the record comes from.
    """

    def __init__(self, topic: str, partition: int, message: str) -> None:
        self.topic = topic
        self.partition = partition
        super().__init__(message)


class ProducerFailed(ServiceError):
    """The producer is of no more use; only a new process can go on."""


class Fenced(ProducerFailed):
    """A newer process uses the same transactional id."""


class TransactionUnknown(ProducerFailed):
    """Kafka has not begun the transaction that was to end, or has ended it already."""
