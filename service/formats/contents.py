"""What stands in many records: requests in columns, and whatever is none one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litehit.registration import Registration
from litehit.request import Request
from litehit.window_requests import WindowRequests
from service.formats.base import Content, FormatError, RecordContext

Other = Registration | FormatError | None
"""What stands in a record that is no request: see `Content`; or why it was refused."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """What is known of R records without reading them: `RecordContext` in columns.

    Attributes:
        instance_ids, positions, times_ns, named: R of each; the fields of `RecordContext`.
    """

    instance_ids: Sequence[str | None]
    positions: Sequence[int]
    times_ns: Sequence[int | None]
    named: Sequence[str | None]

    @classmethod
    def of_lines(cls, instance_id: str | None, numbers: Sequence[int], time_ns: int | None = None) -> Contexts:
        """Of the lines of a file, by their numbers: a default instance, and the time for those that state none."""
        count = len(numbers)
        return cls([instance_id] * count, numbers, [time_ns] * count, [None] * count)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, place: int) -> RecordContext:
        return RecordContext(self.instance_ids[place], self.positions[place], self.times_ns[place], self.named[place])


class Contents(NamedTuple):
    """What stands in R records.

    Attributes:
        requests: their numbers are the records' places, ascending.
        others: of the other records, with their places, ascending.
    """

    requests: WindowRequests
    others: Sequence[tuple[int, Other]]

    @classmethod
    def read_one_by_one(
        cls,
        parse: Callable[[bytes, RecordContext], Content],
        records: Sequence[bytes],
        contexts: Contexts,
        places: Iterable[int],
    ) -> Contents:
        """What `TraceFormat.parse` makes of the records at some places, which ascend."""
        numbers: list[int] = []
        requests: list[Request] = []
        others: list[tuple[int, Other]] = []
        for place in places:
            try:
                content = parse(records[place], contexts[place])
            except FormatError as error:
                others.append((place, error))
                continue
            if isinstance(content, Request):
                numbers.append(place)
                requests.append(content)
            else:
                others.append((place, content))
        return cls(WindowRequests.from_requests(numbers, requests), others)

    @classmethod
    def complete(
        cls,
        plain: WindowRequests,
        parse: Callable[[bytes, RecordContext], Content],
        records: Sequence[bytes],
        contexts: Contexts,
    ) -> Contents:
        """Of records of which some were read at once, numbered by their places: the others are read one by one."""
        if len(plain) == len(records):
            return cls(plain, ())
        left = np.ones(len(records), np.bool_)
        left[plain.numbers] = False
        return cls(plain, ()).join(cls.read_one_by_one(parse, records, contexts, np.flatnonzero(left).tolist()))

    def join(self, other: Contents) -> Contents:
        """What stands in these records and in others."""
        requests = self.requests.merge(other.requests, self.requests.numbers, other.requests.numbers)
        return Contents(requests, sorted((*self.others, *other.others), key=_place))

    def at(self, places: Sequence[int]) -> Contents:
        """The same, of records that stand at other places; those are given for each, and ascend."""
        numbers = np.array(places, np.int64)[self.requests.numbers]
        others = [(places[place], other) for place, other in self.others]
        return Contents(self.requests.numbered(numbers), others)


def _place(other: tuple[int, Other]) -> int:
    return other[0]
