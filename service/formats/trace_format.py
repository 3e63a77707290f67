"""The protocol behind which every input format stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from litehit.curves import Int64Array
from litehit.window import Window
from litehit.window_requests import WindowRequests
from service.formats.base import Content, RecordContext
from service.formats.contents import Contents, Contexts


class PlainRequests(NamedTuple):
    """The requests of a window that were read all at once.

    Attributes:
        requests: R requests.
        places: int64[R], ascending: the place of each one's record in the window.
        left: int64[L], ascending: places of the records that `parse` has to read; the window's others are blank.
    """

    requests: WindowRequests
    places: Int64Array
    left: Int64Array


class TraceFormat(Protocol):
    """One input format.

    Attributes:
        reorder_seconds: a file's records are put in order of their times where they stand so far apart; 0: they are
            in order.
    """

    reorder_seconds: float = 0.0

    @property
    def name(self) -> str:
        """The format's name in `--format` and in the header `litehit-format`."""
        ...

    def parse(self, record: bytes, context: RecordContext) -> Content:
        """Read one record. Safe to call from several threads.

        Raises:
            FormatError: the record is not of this format, or its instance or time is known neither from the record
                nor from the context.
        """
        ...

    def parse_many(self, records: Sequence[bytes], contexts: Contexts) -> Contents:
        """What `parse` makes of each of many records, the error in the place of what it refuses."""
        return Contents.read_one_by_one(self.parse, records, contexts, range(len(records)))

    def read_plain(self, window: Window, instance_id: str | None) -> PlainRequests | None:
        """Read the plain records of a window at once, to what `parse` makes of each; None: it reads none so.

        Safe to call from several threads.

        Args:
            window: the records.
            instance_id: the instance of records that name none; None where there is no such default.
        """
        return None
