"""Every error the archive raises.

ArchiveError
├── StoreError             the store can't be used; names the URL or path
│   ├── CannotSetAside     this kind of store can't take a file out of the way safely
│   ├── CannotReplace      nor replace one only where it is unchanged
│   ├── AlreadyExists      an exclusive create found the name taken
│   ├── NotFound           no file has the name
│   └── Changed            the file is not the one it was any more
├── FactsExpired           retention removed facts before they were read
├── SegmentError           a segment file is damaged or is not what its name says
├── UndecodableFact        a record on the facts topic is no fact
├── ChainBroken            a partition's segments do not say where its archive ends
├── OffsetsMissing         facts expired from the topic before they were archived
└── ArchiveDisagrees       another archiver's segment holds other facts for the same offsets
"""

from __future__ import annotations

from litehit.counted import counted
from service.errors import ServiceError


class ArchiveError(ServiceError):
    """Base of every error the archive raises on purpose."""


class StoreError(ArchiveError):
    """The store can't be used."""


class CannotSetAside(StoreError):
    """This kind of store can't take a file out of the way safely."""


class CannotReplace(StoreError):
    """This kind of store can't replace a file on condition that nobody else did."""


class AlreadyExists(StoreError):
    """An exclusive create found the name taken.

    Attributes:
        path: the name, relative to the store.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} exists already")


class NotFound(StoreError):
    """No file has the name.

    Attributes:
        path: the name, relative to the store.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is not in the store")


class Changed(StoreError):
    """The file is not the one it was any more: it was replaced or removed since it was listed or opened.

    Attributes:
        path: the name, relative to the store.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} was replaced or removed since it was looked at; list the store again")


class SegmentError(ArchiveError):
    """A segment file is damaged or is not what its name says.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class FactsExpired(ArchiveError):
    """Retention removed facts before they were read.

    Attributes:
        start_offset: the chain's facts begin there now.
    """

    def __init__(self, chain: str, start_offset: int) -> None:
        self.start_offset = start_offset
        super().__init__(
            f"{chain}: the facts before offset {start_offset} were removed by retention while they were read; try again"
        )


class UndecodableFact(ArchiveError):
    """A record on the facts topic is no fact.

    Attributes:
        index: place of the record in the batch that was decoded, from 0.
        reason: what is wrong with it.
    """

    def __init__(self, index: int, reason: str) -> None:
        self.index = index
        self.reason = reason
        super().__init__(f"no fact: {reason}")


class ChainBroken(ArchiveError):
    """A partition's segments do not say where its archive ends."""


class OffsetsMissing(ArchiveError):
    """Facts expired from the topic before they were archived.

    Attributes:
        expected: offset the archive goes on at.
        low, high: first offset the topic still has, and its end.
        expired: they are missing at the topic's beginning; otherwise the topic ends too early.
    """

    def __init__(self, partition: str, expected: int, low: int, high: int) -> None:
        self.expected = expected
        self.low = low
        self.high = high
        self.expired = expected < low
        if self.expired:
            found = (
                f"the topic begins at offset {low}: {counted(low - expected, 'offset')} missing, expired before being "
                f"archived; lengthen the topic's retention, and either restore the segments that hold them from a copy "
                f"of the store and restart, or restart with --accept-gap (LITEHIT_ACCEPT_GAP=true), which goes on at "
                f"offset {low} and records the gap in the next segment"
            )
        else:
            found = (
                f"the topic ends at offset {high}, {counted(expected - high, 'offset')} earlier: it is not the topic "
                f"that was archived, or it lost records; check the topic and the store's URL"
            )
        super().__init__(f"{partition}: the archive goes on at offset {expected}, but {found}")


class ArchiveDisagrees(ArchiveError):
    """Another archiver's segment holds other facts for the same offsets.

    Attributes:
        path: the other archiver's segment.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} was published by another archiver and differs from the facts consumed here; "
            f"check that both read the same cluster's topic, then restart"
        )
