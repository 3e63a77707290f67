"""Reading a chain from its beginning to its end while its segments are merged."""

from __future__ import annotations

from service.archive.catalog import Catalog
from service.archive.chain import Chain
from service.archive.errors import Changed, FactsExpired, NotFound
from service.archive.segment import SegmentInfo


class ChainWalk:
    """Goes along the segments of a chain as it was at one moment: each of its facts once, in order.

    A segment that is gone or another was merged with others; then the walk goes on, at the offset it has come to, in
    what they were merged into, and still ends where the chain ended at that moment.

    Args:
        catalog: of the store.
        chain: as the catalogue showed it.
    """

    def __init__(self, catalog: Catalog, chain: Chain) -> None:
        self._catalog = catalog
        self._chain = chain
        self._left = chain.segments
        self._position = self._left[0].base_offset if self._left else 0
        self._end = self._left[-1].end_offset if self._left else 0

    @property
    def segment(self) -> SegmentInfo | None:
        """The one to read; None at the end."""
        return self._left[0] if self._left else None

    @property
    def part(self) -> tuple[int, int]:
        """The offsets, first and past the last, of which it is to be read, as far as it has them."""
        return self._position, self._end

    def passed(self, offset: int) -> None:
        """Everything before this offset is read."""
        self._position = max(self._position, offset)
        self._left = tuple(one for one in self._left if self._position < one.end_offset)

    def look_again(self, error: Changed | NotFound) -> None:
        """The segment is not what it was: find what holds the facts that are left.

        Raises:
            FactsExpired: they were removed.
            SegmentError: what holds them is damaged.
            Changed, NotFound: the one given: nothing else holds them.
        """
        self._catalog.refresh(self._chain.key)
        now = self._catalog.view.chain(self._chain.key)
        if self._position < now.start_offset:
            raise FactsExpired(str(now.key), now.start_offset)
        for damage in now.damaged:
            if damage.path not in {one.path for one in self._chain.damaged}:
                raise damage
        if self.segment in now.segments or set(now.faults) - set(self._chain.faults):
            raise error
        left = tuple(one for one in now.segments if one.base_offset < self._end)
        if not left or left[-1].end_offset < self._end:  # the chain's end is gone, which leaves no hole
            raise error
        self._left = left
        self.passed(self._position)
