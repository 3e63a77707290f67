"""Points of a hit function: every breakpoint, or well-chosen ones and how far off the truth is between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from litehit.curves import Int64Array
from service.api.hit_function import HitFunction, Hits, Integers, scaled
from service.api.selection import HitSums

_PROBES = 8
"""Places looked at for each point given: more of them give a tighter bound of the error."""

_AT_ONCE = 8192
"""Capacities asked for at once."""

_ROUNDING = 1e-14
"""More than the rounding of the few operations that an error is computed by, relative to the hits it is made of."""


@dataclass(frozen=True, slots=True)
class Errors:
    """How far linear interpolation at whole units may be off between points, at most.

    Attributes:
        blocks, tokens: in hit blocks and hit tokens.
        rise_tokens: the largest rise of the hit tokens from one point to the next.
    """

    blocks: int
    tokens: int
    rise_tokens: int


@dataclass(frozen=True, slots=True)
class CurvePoints:
    """N points of a function, by capacity.

    Attributes:
        units: integers[N], capacities in the function's `unit_bytes`, ascending.
        hits: hits there, exact.
        errors: between the points.
    """

    units: Integers
    hits: Hits
    errors: Errors


@dataclass(frozen=True, slots=True)
class _Piece:
    """One group's curve; capacities in units."""

    sums: HitSums
    units_per_block: int
    block_size_tokens: int
    bends: Int64Array
    hits: Int64Array

    def units(self, capacity_blocks: Int64Array) -> Integers:
        """Ascending capacities in units."""
        return scaled(capacity_blocks, self.units_per_block)

    def candidates(self, count: int) -> Int64Array:
        """Capacities in blocks, about `count`: around equal rises of the hits, and the bends where they are as few."""
        wanted = np.linspace(0, float(self.hits[-1]), count // 2 + 1)[1:]
        after = np.minimum(np.searchsorted(self.hits, wanted), len(self.hits) - 1)
        low, high = self.hits[after - 1], self.hits[after]
        # Only the choice of a capacity is rounded here, never the hits at it.
        along = (wanted - low) / np.maximum(high - low, 1)
        below = self.bends[after - 1] + (along * (self.bends[after] - self.bends[after - 1])).astype(np.int64)
        near = np.clip(np.concatenate([below, below + 1]), self.bends[0], self.bends[-1])
        return _distinct(np.concatenate([near, self.bends if len(self.bends) <= count else self.bends[[0, -1]]]))


def count_breakpoints(function: HitFunction) -> int:
    """How many points `every_breakpoint` has at most."""
    return sum(len(piece.bends) for piece in _pieces(function))


def every_breakpoint(function: HitFunction) -> CurvePoints:
    """All capacities at which the function of a group bends; with one charge it is linear between them."""
    units = _bends(list(_pieces(function)))
    hits = _hits(function, units)
    everything = np.arange(len(units))
    return CurvePoints(units, hits, _errors(units, hits, everything, is_linear=function.block_bytes is not None))


def chosen_points(function: HitFunction, count: int) -> CurvePoints:
    """At most `count` points, two at least, at about equal rises of the hits and on both sides of jumps.

    So no part of the curve is left out whatever the axis: from one point to the next the hits rise by about a
    `count`-th of the ceiling, except across a jump of one unit.
    """
    pieces = list(_pieces(function))
    if not pieces:
        return every_breakpoint(function)
    probes_wanted = _PROBES * count
    units = _probes(pieces, probes_wanted)
    # Between the bends of a function with one charge lie straight lines, so that probes there tell all.
    is_linear = function.block_bytes is not None and sum(len(piece.bends) for piece in pieces) <= probes_wanted
    bends = _bends(pieces) if is_linear else units[:0]
    units = _distinct(np.concatenate([units, bends]))
    hits = _hits(function, units)
    kept = np.searchsorted(units, bends) if len(bends) <= count // 2 else np.empty(0, np.int64)
    chosen = _distinct(np.concatenate([_equal_rises(hits.tokens, count - len(kept)), kept]))
    return CurvePoints(
        units[chosen], Hits(hits.blocks[chosen], hits.tokens[chosen]), _errors(units, hits, chosen, is_linear=is_linear)
    )


def _pieces(function: HitFunction) -> Iterator[_Piece]:
    for part in function.parts:
        for sums in part.sums:
            bends, hits = sums.curve().breakpoints()
            if len(bends):
                units_per_block = part.block_bytes // function.unit_bytes
                yield _Piece(sums, units_per_block, part.block_size_tokens, bends, hits)


def _bends(pieces: list[_Piece]) -> Integers:
    units = [piece.units(piece.bends) for piece in pieces]
    return _distinct(np.concatenate(units)) if units else np.empty(0, np.int64)


def _distinct(values: Integers) -> Integers:
    """Ascending, each once; numpy's own takes minutes for some millions of multiples of a large number."""
    ordered: Integers = np.sort(values)
    return ordered[np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))] if len(ordered) else ordered


def _hits(function: HitFunction, units: Integers) -> Hits:
    # A part at a time: capacities in bytes are Python's integers, which take room.
    parts = [
        function.hits([capacity * function.unit_bytes for capacity in units[start : start + _AT_ONCE].tolist()])
        for start in range(0, max(1, len(units)), _AT_ONCE)
    ]
    return Hits(np.concatenate([part.blocks for part in parts]), np.concatenate([part.tokens for part in parts]))


def _probes(pieces: list[_Piece], count: int) -> Integers:
    """About `count` capacities at equal rises, from each piece's own: hits of all pieces at all of them are not needed.

    The hits of a piece count from its candidate on, which is a little late, and only the choice depends on it.
    """
    units: list[Integers] = []
    rises = []
    for piece in pieces:
        capacity_blocks = piece.candidates(count)
        units.append(piece.units(capacity_blocks))
        tokens = piece.sums.hits(capacity_blocks).astype(np.float64) * piece.block_size_tokens
        rises.append(np.diff(tokens, prepend=0))
    everywhere = np.concatenate(units)
    order = np.argsort(everywhere, kind="stable")
    everywhere, about = everywhere[order], np.cumsum(np.concatenate(rises)[order])
    last = np.flatnonzero(np.append(everywhere[1:] != everywhere[:-1], True))
    everywhere, about = everywhere[last], about[last]
    return everywhere if len(everywhere) <= count else everywhere[_equal_rises(about, count)]


def _equal_rises(hits: Integers, count: int) -> Int64Array:
    """At most `count` places, two at least: the ends, those at equal rises, and those before a jump beyond such a rise.

    Args:
        hits: hits at P >= 2 capacities, which do not fall.
        count: from 2.
    """
    last = len(hits) - 1
    total = float(hits[-1] - hits[0])
    steps = np.diff(hits.astype(np.float64), prepend=float(hits[0]))
    rises = count - 1
    while True:
        wanted = float(hits[0]) + total * np.arange(rises + 1) / rises
        reached = np.minimum(np.searchsorted(hits, wanted), last)
        before_jumps = reached[steps[reached] > total / rises] - 1
        places = _distinct(np.concatenate([[0], reached, before_jumps, [last]]))
        if len(places) <= count:
            return places
        if rises == 1:
            return np.array([0, last])
        rises = max(1, min(rises - 1, rises * count // len(places)))


def _errors(units: Integers, hits: Hits, chosen: Int64Array, *, is_linear: bool) -> Errors:
    """Bounds for interpolation between the chosen ones of P places.

    Args:
        units: the places.
        hits: hits there.
        chosen: indices of the points, the first and the last place among them.
        is_linear: hits are linear between neighbouring places; else all that is known is that they do not fall.
    """
    if len(chosen) < 2:
        return Errors(0, 0, 0)
    rise = max(np.diff(hits.tokens[chosen]).tolist())
    if is_linear and len(chosen) == len(units):
        return Errors(0, 0, rise)
    return Errors(
        _bound(units, hits.blocks, chosen, is_linear=is_linear),
        _bound(units, hits.tokens, chosen, is_linear=is_linear),
        rise,
    )


def _bound(units: Integers, hits: Integers, chosen: Int64Array, *, is_linear: bool) -> int:
    # Stretches from place to place, each inside one stretch from point to point.
    place = np.arange(len(units) - 1)
    point = np.searchsorted(chosen, place, side="right") - 1
    left, right = chosen[point], chosen[point + 1]
    width = (units[right] - units[left]).astype(np.float64)
    rise = (hits[right] - hits[left]).astype(np.float64)
    low, high = ((hits[at] - hits[left]).astype(np.float64) for at in (place, place + 1))
    line_low, line_high = (rise * ((units[at] - units[left]).astype(np.float64) / width) for at in (place, place + 1))
    at_ends = np.maximum(np.abs(low - line_low), np.abs(high - line_high))
    # Inside, hits lie between those of the ends, and so does the line.
    inside = np.maximum(high - line_low, line_high - low)
    is_known = np.ones(len(place), np.bool_) if is_linear else (units[place + 1] - units[place] == 1).astype(np.bool_)
    worst = float(np.max(np.where(is_known, at_ends, inside)))
    return ceil(worst + float(rise.max()) * _ROUNDING) if worst > float(rise.max()) * _ROUNDING else 0
