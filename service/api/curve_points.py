"""Points of a hit function: every breakpoint, or well-chosen ones and how far off the truth is between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from litehit import point_kernels
from litehit.curves import Int64Array
from litehit.jit import interpreted
from service.api.hit_function import HitFunction, Hits, Integers, scaled

_PROBES = 8
"""Places looked at for each point given: more of them give a tighter bound of the error."""

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

    units_per_block: int
    block_size_tokens: int
    bends: Int64Array
    hits: Int64Array

    def units(self, capacity_blocks: Int64Array) -> Integers:
        """Ascending capacities in units."""
        return scaled(capacity_blocks, self.units_per_block)

    def candidates(self, count: int) -> tuple[Int64Array, Int64Array]:
        """Capacities in blocks, about `count`, and the hits there.

        They lie around equal rises of the hits, and at the bends where these are as few.
        """
        is_few = len(self.bends) <= count
        found, hits = np.empty((2, count + (len(self.bends) if is_few else 2)), np.int64)
        end = point_kernels.candidates(self.bends, self.hits, count // 2, is_few, found, hits)
        return found[:end], hits[:end]


def count_breakpoints(function: HitFunction) -> int:
    """How many points `every_breakpoint` has at most."""
    return sum(len(piece.bends) for piece in _pieces(function))


def every_breakpoint(function: HitFunction) -> CurvePoints:
    """All capacities at which the function of a group bends; with one charge it is linear between them."""
    units = _bends(list(_pieces(function)))
    hits = function.hits(units, function.unit_bytes)
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
    # Between the bends of a function with one charge lie straight lines, so that probes there tell all.
    is_linear = function.block_bytes is not None and sum(len(piece.bends) for piece in pieces) <= probes_wanted
    bends = _bends(pieces) if is_linear else np.empty(0, np.int64)
    if len(pieces) == 1:
        units, hits = _probes_of_one(function, pieces[0], probes_wanted, bends)
    else:
        units = _probes(pieces, probes_wanted, bends)
        hits = function.hits(units, function.unit_bytes)
    kept = np.searchsorted(units, bends) if 0 < len(bends) <= count // 2 else ()
    chosen = _equal_rises(hits.tokens, count - len(kept))
    if len(kept):
        chosen = _distinct(np.concatenate([chosen, kept]))
    return CurvePoints(
        units[chosen], Hits(hits.blocks[chosen], hits.tokens[chosen]), _errors(units, hits, chosen, is_linear=is_linear)
    )


def _pieces(function: HitFunction) -> Iterator[_Piece]:
    for part in function.parts:
        for bends, hits in part.curves:
            yield _Piece(part.block_bytes // function.unit_bytes, part.block_size_tokens, bends, hits)


def _bends(pieces: list[_Piece]) -> Integers:
    units = [piece.units(piece.bends) for piece in pieces]
    if len(units) == 1:
        return units[0]
    return _distinct(np.concatenate(units)) if units else np.empty(0, np.int64)


def _distinct(values: Integers) -> Integers:
    """Ascending, each once; numpy's own takes minutes for some millions of multiples of a large number."""
    ordered: Integers = np.sort(values)
    is_last = np.ones(len(ordered), np.bool_)
    is_last[:-1] = ordered[1:] != ordered[:-1]
    return ordered[is_last]


def _probes_of_one(function: HitFunction, piece: _Piece, count: int, bends: Integers) -> tuple[Integers, Hits]:
    """`_probes` of the only piece of a function, with the hits there, which are the function's."""
    capacity_blocks, hit_blocks = piece.candidates(count)
    units = piece.units(capacity_blocks)
    if len(units) > count:
        places = _equal_rises(hit_blocks, count)
        if len(bends):
            places = _distinct(np.concatenate([places, np.searchsorted(units, bends)]))
        units, hit_blocks = units[places], hit_blocks[places]
    return units, function.hits_of(hit_blocks, piece.block_size_tokens)


def _probes(pieces: list[_Piece], count: int, bends: Integers) -> Integers:
    """About `count` capacities at equal rises, from each piece's own: hits of all pieces at all of them are not needed.

    Those of `bends`, `count` at most, are among them: all bends there are, or none.
    The hits of a piece count from its candidate on, which is a little late, and only the choice depends on it.
    """
    found = [(*piece.candidates(count), piece) for piece in pieces]
    offsets = np.cumsum([0, *(len(hits) for _, hits, _ in found)])
    everywhere = np.concatenate([piece.units(capacity_blocks) for capacity_blocks, _, piece in found])
    rises = np.concatenate([hits for _, hits, _ in found]).astype(np.float64)
    worths = np.array([piece.block_size_tokens for piece in pieces], np.float64)
    merge = point_kernels.merge_rises
    if everywhere.dtype == object:
        merge = interpreted(merge)
    end = merge(offsets, everywhere, rises, worths, np.empty_like(everywhere), np.empty_like(rises))
    everywhere, about = everywhere[:end], np.cumsum(rises[:end])
    if len(everywhere) <= count:
        return everywhere  # every bend is a candidate, where they are as few
    return _distinct(np.concatenate([everywhere[_equal_rises(about, count)], bends]))


def _equal_rises(hits: Integers, count: int) -> Int64Array:
    """At most `count` places, two at least: the ends, those at equal rises, and those before a jump beyond such a rise.

    Args:
        hits: hits at P >= 2 capacities, which do not fall.
        count: from 2.
    """
    places = np.empty(2 * count, np.int64)
    return places[: point_kernels.equal_rises(hits.astype(np.float64), count, places)]


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
    if is_linear and len(chosen) == len(units):
        return Errors(0, 0, int(np.max(np.diff(hits.tokens))))
    blocks, tokens = (_largest_errors(chosen, units, numbers, is_linear) for numbers in (hits.blocks, hits.tokens))
    return Errors(_rounded_up(*blocks), _rounded_up(*tokens), int(tokens[1]))


def _largest_errors(chosen: Int64Array, units: Integers, hits: Integers, is_linear: bool) -> tuple[float, int]:
    measure = point_kernels.largest_errors
    if object in (units.dtype, hits.dtype):
        measure = interpreted(measure)
    return measure(chosen, units, hits, is_linear)


def _rounded_up(worst: float, rise: int) -> int:
    return ceil(worst + rise * _ROUNDING) if worst > rise * _ROUNDING else 0
