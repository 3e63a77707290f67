"""Sums of a window: whole segments and whole hours from pages, the ragged edges from rows, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from litehit.curves import Int64Array
from service.api.chain_state import ChainState
from service.api.groups import Groups
from service.api.pages import SegmentSums
from service.api.rows import FactRows
from service.api.segment_reader import SegmentReader
from service.api.selection import Part
from service.api.turns import Turns
from service.api.windows import TimeWindow
from service.errors import ServiceError

_READERS = 4
"""Edges read at once, of all calls together: an object store answers each after tens of milliseconds."""


class WindowTooLarge(ServiceError):
    """A window would read more rows than one call may."""

    def __init__(self, rows: int, limit: int) -> None:
        self.rows = rows
        self.limit = limit
        super().__init__(f"the window's edges lie among {rows} facts in all; one call reads {limit} at most")


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows of a segment to read.

    Attributes:
        segment: the segment.
        window: the rows' times.
        row_groups: where in the file they may be.
        taken_off: they are not to be added but to be taken off what was added.
    """

    segment: SegmentSums
    window: TimeWindow
    row_groups: Int64Array
    taken_off: bool

    @classmethod
    def of(cls, segment: SegmentSums, window: TimeWindow, *, taken_off: bool) -> Edge:
        """The rows of a segment inside a window."""
        groups = segment.row_groups
        return cls(segment, window, np.flatnonzero(window.touched(groups.first_ns, groups.last_ns)), taken_off)

    @property
    def rows(self) -> int:
        """Rows of the row groups."""
        return int(self.segment.row_groups.rows[self.row_groups].sum())


class WindowSums:
    """Sums windows.

    Args:
        reader: reads the rows of published segments.
        window_rows: most rows of segments that one call may read.
        window_calls: calls that may read rows at the same time.
        window_queue: calls that may wait for their turn to.
    """

    def __init__(self, reader: SegmentReader, *, window_rows: int, window_calls: int, window_queue: int) -> None:
        self._reader = reader
        self._window_rows = window_rows
        self._threads = ThreadPoolExecutor(_READERS, "window-rows")
        self._turns = Turns(window_calls, window_queue)

    def of_window(self, chains: Iterable[ChainState], window: TimeWindow, groups: Groups) -> list[Part]:
        """What makes up the facts of a window; the parts' rows are numbers of `groups`.

        Raises:
            WindowTooLarge: it needs more rows than one call may read.
            TooManyCalls: too many calls are reading rows.
            ArchiveError: a segment can't be read, or is another by now.
        """
        parts: list[Part] = []
        edges: list[Edge] = []
        for chain in chains:
            for segment in chain.segments.values():
                _add_segment(segment, window, groups, parts, edges)
            for chunk in chain.tail.chunks:
                reach = chunk.reach
                if window.covers(reach.first_time_ns, reach.last_time_ns):
                    rows = groups.numbers(chunk.rows.groups.keys)[chunk.sums.codes]
                    parts.append(Part(chunk.sums, rows))
                elif window.overlaps(reach.first_time_ns, reach.last_time_ns):
                    parts += _inside(chunk.rows, window, groups)
        to_read = sum(edge.rows for edge in edges)
        if to_read > self._window_rows:
            raise WindowTooLarge(to_read, self._window_rows)
        if edges:
            with self._turns.turn():
                for read in self._threads.map(lambda edge: self._read(edge, groups), edges):
                    parts += read
        return parts

    def _read(self, edge: Edge, groups: Groups) -> list[Part]:
        return [
            part
            for rows in self._reader.read(edge.segment.info, edge.row_groups.tolist())
            for part in _inside(rows, edge.window, groups, taken_off=edge.taken_off)
        ]


def _add_segment(
    segment: SegmentSums, window: TimeWindow, groups: Groups, parts: list[Part], edges: list[Edge]
) -> None:
    info, pages = segment.info, segment.pages
    if not window.overlaps(info.first_time_ns, info.last_time_ns):
        return
    numbers = groups.numbers(pages.groups.keys)
    if not (numbers >= 0).any():
        return
    if window.covers(info.first_time_ns, info.last_time_ns):
        parts.append(Part(pages.totals, numbers[pages.totals.codes]))
        return
    touched = np.flatnonzero(window.touched(pages.first_ns, pages.last_ns))
    if not len(touched):
        return
    low, high = int(touched[0]), int(touched[-1]) + 1
    # Hours between two others that are touched are inside as a whole: only the first and the last can be cut.
    for place in sorted({low, high - 1}):
        if window.covers(int(pages.first_ns[place]), int(pages.last_ns[place])):
            continue
        inside, outside = window.split(*pages.hour(place))
        added = [Edge.of(segment, inside, taken_off=False)]
        others = [Edge.of(segment, one, taken_off=True) for one in outside]
        if sum(edge.rows for edge in others) < sum(edge.rows for edge in added):
            edges += others
            continue
        edges += added
        if place == low:
            low += 1
        else:
            high -= 1
    if low < high:
        table, codes = pages.bucket_range(low, high)
        parts.append(Part(table, numbers[codes]))


def _inside(rows: FactRows, window: TimeWindow, groups: Groups, *, taken_off: bool = False) -> Iterator[Part]:
    """The rows of a window and of groups, summed."""
    numbers = groups.numbers(rows.groups.keys)
    mask = window.mask(rows.times_ns) & (numbers[rows.codes] >= 0)
    if mask.any():
        table = rows.select(np.flatnonzero(mask)).sums()
        yield Part(table.negated() if taken_off else table, numbers[table.codes])
