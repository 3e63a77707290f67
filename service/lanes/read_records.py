"""Records of a partition, read: requests in columns, whatever is none one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from litehit.registration import Registration
from litehit.window_requests import WindowRequests
from schemas.dead_letter import Reason
from service.lanes.counts import Ignored
from service.records import SourceRecords


class Poison(NamedTuple):
    """Why a record becomes a dead letter."""

    reason: Reason
    sentence: str


Other: TypeAlias = Registration | Ignored | Poison
"""What a record is that is no request."""


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """R records and what stands in them.

    Attributes:
        sources: the records, in offset order.
        requests: those among them; their numbers are their rows, ascending.
        others: of the other records, with their rows, ascending.
    """

    sources: SourceRecords
    requests: WindowRequests
    others: Sequence[tuple[int, Other]]

    def __len__(self) -> int:
        return len(self.sources)

    def part(self, first: int, end: int) -> ReadRecords:
        """The records of some rows, whose rows then begin with 0."""
        if first == 0 and end == len(self):
            return self
        low, high = np.searchsorted(self.requests.numbers, (first, end))
        requests = self.requests.select(np.arange(low, high))
        return ReadRecords(
            self.sources[first:end],
            requests.numbered(requests.numbers - first),
            [(row - first, other) for row, other in self.others if first <= row < end],
        )
