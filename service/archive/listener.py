"""What an archiver tells the rest of its process."""

from __future__ import annotations

from typing import Protocol

from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo


class FactListener(Protocol):
    """Hears of facts as the archiver consumes them, in the order of each chain.

    It hears of a segment when all facts in it were told, from another thread: the next ones may come meanwhile.

    Segments that were in the store when the archiver started are not told. At any moment the facts of a chain are those
    of its published segments and, after them, what was appended from the end of the last one on.
    """

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """Further facts were consumed, at least one; they follow those before."""

    def published(self, info: SegmentInfo) -> None:
        """A segment that follows the last one is in the store, and from now on stands for all facts in its offsets.

        This archiver wrote it of facts that it had appended, or another archiver was quicker; then its facts agree
        with those appended, and it may end before or after them. What comes next goes on from where the later ends. If
        this archiver was far behind, segments that were published may have been merged into it, so that it begins
        before the last one's end.
        """

    def tail_dropped(self, chain: ChainKey) -> None:
        """What was appended after the last segment is void: the partition stopped before it could be published."""


class FactListeners:
    """Passes on what it hears.

    Args:
        listeners: who hears it, in this order; maybe nobody.
    """

    def __init__(self, *listeners: FactListener) -> None:
        self._listeners = listeners

    def appended(self, chain: ChainKey, rows: ArchivedFacts) -> None:
        """See `FactListener.appended`."""
        for listener in self._listeners:
            listener.appended(chain, rows)

    def published(self, info: SegmentInfo) -> None:
        """See `FactListener.published`."""
        for listener in self._listeners:
            listener.published(info)

    def tail_dropped(self, chain: ChainKey) -> None:
        """See `FactListener.tail_dropped`."""
        for listener in self._listeners:
            listener.tail_dropped(chain)
