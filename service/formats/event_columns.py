"""Request events that a kernel has read, and the requests that they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litehit.ascii_texts import AsciiTexts
from litehit.curves import Int64Array
from litehit.key_columns import gather_keys
from litehit.request import RequestBatch
from litehit.window_requests import WindowRequests
from service.formats.contents import Contexts


@dataclass(frozen=True, slots=True)
class EventColumns:
    """R records, of which some are plain request events; the rows of the others mean nothing.

    Attributes:
        text: the records, end to end, with whatever stands between them.
        is_plain: bool[R]; a record that is not is for `parse`.
        bounds: int64[R, 4], where the instance's id begins in `text`, and ends; and the trace's. Both are in ASCII, and
            an empty one is not stated.
        times_ns, has_time: int64[R], nanoseconds, which mean nothing where a record states none; bool[R].
        lengths: int64[R], tokens; 0 where a record states none.
        blocks: int64[R], tokens of a trace block; `NOT_STATED` where a record states none.
        keys: int64[K], those of all, with gaps.
        key_firsts, key_counts: int64[R]; record i has the keys `key_firsts[i]:key_firsts[i] + key_counts[i]`.
    """

    text: bytes
    is_plain: NDArray[np.bool_]
    bounds: Int64Array
    times_ns: Int64Array
    has_time: NDArray[np.bool_]
    lengths: Int64Array
    blocks: Int64Array
    keys: Int64Array
    key_firsts: Int64Array
    key_counts: Int64Array

    def requests(self, contexts: Contexts, first: int = 0) -> WindowRequests:
        """The plain ones, numbered by their places; not those that `parse` has to refuse.

        Args:
            contexts: of the records, from place `first` on, and of others.
            first: place of the first of the records.
        """
        rows = slice(None) if self.is_plain.all() else np.flatnonzero(self.is_plain)
        numbers = np.arange(first, first + len(self.is_plain))[rows]
        places, text, strings = numbers.tolist(), self.text, _Strings()
        bounds = np.ascontiguousarray(self.bounds[rows].T)
        instances, instance_ends = bounds[:2].tolist()
        named, defaults = contexts.named, contexts.instance_ids
        indices: dict[str | None, int] = {}
        instance_of = np.array(
            [
                indices.setdefault(
                    (strings[text[begin:end]] or defaults[place]) if named[place] is None else named[place] or None,
                    len(indices),
                )
                for place, begin, end in zip(places, instances, instance_ends, strict=True)
            ],
            np.int64,
        )
        times_ns, has_time = np.ascontiguousarray(self.times_ns[rows]), self.has_time[rows]
        unknown: set[int] = set()
        if not has_time.all():
            times_ns = times_ns.copy()
            for row in np.flatnonzero(~has_time).tolist():
                time_ns = contexts.times_ns[places[row]]
                if time_ns is None:
                    unknown.add(row)
                else:
                    times_ns[row] = time_ns
        if None in indices:
            unknown.update(np.flatnonzero(instance_of == indices[None]).tolist())
        keys, offsets = gather_keys(self.keys, self.key_firsts[rows], self.key_counts[rows])
        requests = WindowRequests(
            numbers,
            RequestBatch(
                AsciiTexts.gather(np.frombuffer(text, np.uint8), bounds[2], bounds[3]),
                times_ns,
                np.ascontiguousarray(self.lengths[rows]),
                keys,
                offsets,
            ),
            tuple(instance_id or "" for instance_id in indices),
            instance_of,
            np.ascontiguousarray(self.blocks[rows]),
            np.zeros(len(places), np.bool_),
        )
        if not unknown:
            return requests
        return requests.select(np.setdiff1d(np.arange(len(places)), list(unknown)))


class _Strings(dict[bytes, str]):
    """Strings by their ASCII: the same few instances stand in many records."""

    def __missing__(self, text: bytes) -> str:
        string = self[text] = text.decode("ascii")
        return string
