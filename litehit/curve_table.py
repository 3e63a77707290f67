"""Sums of many hit curves, by group, in flat arrays: many groups are asked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litehit import curve_kernels
from litehit.aggregate import AggregateCurve
from litehit.curves import FlatCurves, Int64Array

_EVENT_BITS = 63  # what an event may take of an int64 that is not negative
_UINT32_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True, eq=False)
class CurveTable:
    """Requests, tokens and the exact hit curve of each of C groups, which are told apart by a code.

    It never changes, so threads may share it. Curves that were taken off (`negated`) count below zero.

    Attributes:
        codes: int64[C], ascending.
        requests, input_tokens: int64[C].
        offsets: int64[C + 1]; curve i is the places `offsets[i]:offsets[i + 1]` of the next two.
        capacities: uint32 or int64, in blocks: where a curve's slope changes; the first is the largest without a hit.
        hits: of the same type: hit blocks there. Between two capacities hits grow linearly, behind the last they stay.
    """

    codes: Int64Array
    requests: Int64Array
    input_tokens: Int64Array
    offsets: Int64Array
    capacities: NDArray[Any]
    hits: NDArray[Any]

    @classmethod
    def of(cls, codes: Int64Array, input_token_lens: Int64Array, curves: FlatCurves, groups: int) -> CurveTable:
        """Sum R facts: int64[R] codes from 0 to `groups` - 1, int64[R] tokens and R curves."""
        requests, input_tokens = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        curve_kernels.add_counts(codes, input_token_lens, requests, input_tokens)
        present = np.flatnonzero(requests)
        bits = int((curves.starts + curves.runs).max(initial=0)).bit_length()
        if bits + 1 + (groups - 1).bit_length() > _EVENT_BITS:
            return _one_by_one(codes, input_token_lens, curves, present)
        events = np.empty(2 * len(curves.starts), np.int64)
        curve_kernels.pack_events(codes, curves.offsets, curves.starts, curves.runs, bits, events)
        events.sort()
        offsets = np.empty(len(present) + 1, np.int64)
        capacities, hits = np.empty_like(events), np.empty_like(events)
        end = curve_kernels.fold_events(events, bits, present, offsets, capacities, hits)
        return cls(
            present, requests[present], input_tokens[present], offsets, capacities[:end].copy(), hits[:end].copy()
        )

    @classmethod
    def sum(cls, tables: Sequence[CurveTable]) -> CurveTable:
        """All of them added up."""
        if not tables:
            return cls.empty()
        while len(tables) > 1:  # in pairs, so that a place is copied a logarithmic number of times
            pairs = [a + b for a, b in zip(tables[::2], tables[1::2], strict=False)]
            tables = [*pairs, *tables[2 * len(pairs) :]]
        return tables[0]

    @classmethod
    def empty(cls) -> CurveTable:
        """A table of no group."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, np.zeros(1, np.int64), none, none)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def pieces(self) -> int:
        """Places of all its curves."""
        return int(self.offsets[-1] - self.offsets[0])

    def __add__(self, other: CurveTable) -> CurveTable:
        """The sums of both, group by group; groups of which nothing is left are left out."""
        codes = np.union1d(self.codes, other.codes)
        requests, input_tokens = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        for table in (self, other):
            places = np.searchsorted(codes, table.codes)
            requests[places] += table.requests
            input_tokens[places] += table.input_tokens
        offsets = np.empty(len(codes) + 1, np.int64)
        room = self.pieces + other.pieces
        capacities, hits = np.empty(room, np.int64), np.empty(room, np.int64)
        end = curve_kernels.merge(*self._wide(), *other._wide(), codes, offsets, capacities, hits)
        # Of a group without requests a curve may be left, where as much was taken off as was added, but not the same.
        kept = np.flatnonzero(requests | input_tokens | np.diff(offsets))
        if len(kept) < len(codes):
            offsets = offsets[np.append(kept, len(codes))]  # the others' curves take no place
            codes, requests, input_tokens = codes[kept], requests[kept], input_tokens[kept]
        return CurveTable(codes, requests, input_tokens, offsets, capacities[:end].copy(), hits[:end].copy())

    def negated(self) -> CurveTable:
        """What takes it off again where it was added."""
        return CurveTable(
            self.codes,
            -self.requests,
            -self.input_tokens,
            self.offsets,
            self.capacities,
            -self.hits.astype(np.int64, copy=False),
        )

    def slice(self, low: int, high: int) -> CurveTable:
        """Its groups `low:high` by place, sharing the arrays."""
        begin, end = int(self.offsets[low]), int(self.offsets[high])
        return CurveTable(
            self.codes[low:high],
            self.requests[low:high],
            self.input_tokens[low:high],
            self.offsets[low : high + 1] - begin,
            self.capacities[begin:end],
            self.hits[begin:end],
        )

    def take(self, places: Int64Array) -> CurveTable:
        """Its groups at these places, ascending."""
        lengths = np.diff(self.offsets)[places]
        offsets = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        index = np.arange(offsets[-1]) + np.repeat(self.offsets[places] - offsets[:-1], lengths)
        return CurveTable(
            self.codes[places],
            self.requests[places],
            self.input_tokens[places],
            offsets,
            self.capacities[index],
            self.hits[index],
        )

    def recoded(self, codes: Int64Array) -> CurveTable:
        """The same sums under other codes, int64[C], ascending."""
        return CurveTable(codes, self.requests, self.input_tokens, self.offsets, self.capacities, self.hits)

    def compact(self) -> CurveTable:
        """The same with half the bytes, where everything fits 32 bits."""
        if max(self.capacities.max(initial=0), self.hits.max(initial=0)) > _UINT32_MAX:
            return self
        return CurveTable(
            self.codes,
            self.requests,
            self.input_tokens,
            self.offsets,
            self.capacities.astype(np.uint32),
            self.hits.astype(np.uint32),
        )

    def add_counts(self, rows: Int64Array, requests: Int64Array, input_tokens: Int64Array) -> None:
        """Add its counts to those of R rows; `rows` is as in `add_hits`."""
        kept = rows >= 0
        np.add.at(requests, rows[kept], self.requests[kept])
        np.add.at(input_tokens, rows[kept], self.input_tokens[kept])

    def add_hits(self, rows: Int64Array, asked: Int64Array, found: Int64Array) -> None:
        """Add hits to a matrix of answers.

        Args:
            rows: int64[C], the row of each group; a negative one leaves the group out.
            asked: int64[R, K], capacities of each row in blocks; negative is infinite.
            found: int64[R, K], hit blocks, which are added to.
        """
        curve_kernels.add_hits(rows, self.offsets, self.capacities, self.hits, asked, found)

    def curve(self, place: int) -> AggregateCurve:
        """The curve of the group at a place, which must not count below zero."""
        begin, end = int(self.offsets[place]), int(self.offsets[place + 1])
        return AggregateCurve.from_breakpoints(
            self.capacities[begin:end].astype(np.int64), self.hits[begin:end].astype(np.int64)
        )

    def _wide(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        return (
            self.codes,
            self.offsets,
            self.capacities.astype(np.int64, copy=False),
            self.hits.astype(np.int64, copy=False),
        )


def _one_by_one(codes: Int64Array, input_token_lens: Int64Array, curves: FlatCurves, present: Int64Array) -> CurveTable:
    """Of capacities too large to be sorted together with their codes."""
    requests, input_tokens, parts = [], [], []
    for code in present:
        rows = np.flatnonzero(codes == code)
        curve = AggregateCurve()
        curve.add(curves.select(rows))
        parts.append(curve.breakpoints())
        requests.append(len(rows))
        input_tokens.append(input_token_lens[rows].sum())
    offsets = np.zeros(len(present) + 1, np.int64)
    np.cumsum([len(capacities) for capacities, _ in parts], out=offsets[1:])
    return CurveTable(
        present,
        np.array(requests, np.int64),
        np.array(input_tokens, np.int64),
        offsets,
        np.concatenate([capacities for capacities, _ in parts]),
        np.concatenate([hits for _, hits in parts]),
    )


def warm_up() -> None:
    """Compile what tables are made and asked by, or load it from the cache: seconds that no question should wait."""
    one = np.ones(1, np.int64)
    table = CurveTable.of(one - 1, one, FlatCurves(one, one, np.arange(2)), 1)
    for either in (table + table, table.compact()):
        either.add_hits(one - 1, one[np.newaxis], one[np.newaxis].copy())
