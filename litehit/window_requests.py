"""What the records of a window are: requests in columns, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.errors import InvalidRequest
from litehit.request import Request, RequestBatch

NOT_STATED = 0  # no trace block has so many tokens


@dataclass(frozen=True, slots=True)
class WindowRequests:
    """R requests of any instances.

    Attributes:
        numbers: int64[R], those of their records.
        columns: what of them an engine takes, once it is sure that it takes them.
        instances: instance ids, each once.
        instance_of: int64[R], index in `instances`.
        stated_blocks: int64[R], tokens of a request's trace block; `NOT_STATED` where the trace does not say.
        rounded_up: bool[R]: see `Request.keys_rounded_up`.
    """

    numbers: Int64Array
    columns: RequestBatch
    instances: tuple[str, ...]
    instance_of: Int64Array
    stated_blocks: Int64Array
    rounded_up: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def from_requests(cls, numbers: Sequence[int], requests: Sequence[Request]) -> WindowRequests:
        """Turn requests into columns, given their records' numbers."""
        indices: dict[str, int] = {}
        instance_of = [indices.setdefault(request.instance_id, len(indices)) for request in requests]
        return cls(
            np.array(numbers, np.int64),
            RequestBatch.from_requests(requests),
            tuple(indices),
            np.array(instance_of, np.int64),
            np.array([request.trace_block_size_tokens or NOT_STATED for request in requests], np.int64),
            np.array([request.keys_rounded_up for request in requests], np.bool_),
        )

    def select(self, rows: Int64Array) -> WindowRequests:
        """The requests of the given rows, in that order."""
        return WindowRequests(
            self.numbers[rows],
            self.columns.select(rows),
            self.instances,
            self.instance_of[rows],
            self.stated_blocks[rows],
            self.rounded_up[rows],
        )

    def numbered(self, numbers: Int64Array) -> WindowRequests:
        """The same requests; their records have other numbers, int64[R]."""
        return replace(self, numbers=numbers)

    @classmethod
    def concatenate(cls, parts: Sequence[WindowRequests]) -> WindowRequests:
        """Append requests in the order given."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.from_requests((), ())
        indices: dict[str, int] = {}
        instance_of = []
        for part in parts:
            known = [indices.setdefault(instance_id, len(indices)) for instance_id in part.instances]
            instance_of.append(np.array(known, np.int64)[part.instance_of])
        return cls(
            np.concatenate([part.numbers for part in parts]),
            RequestBatch.concatenate([part.columns for part in parts]),
            tuple(indices),
            np.concatenate(instance_of),
            np.concatenate([part.stated_blocks for part in parts]),
            np.concatenate([part.rounded_up for part in parts]),
        )

    def merge(self, other: WindowRequests, places: Int64Array, other_places: Int64Array) -> WindowRequests:
        """These requests and others, in the order of the places that are given for each."""
        if not len(other):
            return self
        joined = WindowRequests.concatenate([self, other])
        return joined.select(np.argsort(np.concatenate([places, other_places])))

    def by_instance(self) -> Iterator[tuple[str, Int64Array]]:
        """Each instance that a request is for, with its requests' rows."""
        for index, instance_id in enumerate(self.instances):
            rows = np.flatnonzero(self.instance_of == index)
            if len(rows):
                yield instance_id, rows

    def requests(self) -> Iterator[tuple[int, Request]]:
        """The requests one by one, with their records' numbers."""
        columns = self.columns
        bounds = columns.offsets.tolist()
        rows = zip(
            self.numbers.tolist(),
            self.instance_of.tolist(),
            columns.trace_ids,
            columns.timestamps_ns.tolist(),
            columns.input_token_lens.tolist(),
            self.stated_blocks.tolist(),
            self.rounded_up.tolist(),
            strict=True,
        )
        for row, (number, instance, trace_id, time, length, stated, rounded_up) in enumerate(rows):
            keys = columns.keys[bounds[row] : bounds[row + 1]]
            yield (
                number,
                Request(self.instances[instance], trace_id, time, keys, length, stated or None, rounded_up),
            )


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """A window, read.

    Attributes:
        records: number of its records, blank ones included.
        requests: those among them, as far as the first record at fault.
        ignored: records that were recognised and ignored, as far.
        fault: that record's number, and what is wrong with it; None where there is none.
    """

    records: int
    requests: WindowRequests
    ignored: int
    fault: tuple[int, InvalidRequest] | None = None
