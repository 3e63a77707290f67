"""What the kernels choose and find equals a plain reference, one capacity at a time."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from litehit import point_kernels
from litehit.jit import interpreted

steps = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=8)  # widths, slopes
first_bends = st.integers(0, 3)


def curve_of(first: int, pieces: list[tuple[int, int]]) -> tuple[Any, Any]:
    """Its breakpoints."""
    bends = np.cumsum([first, *(width for width, _ in pieces)])
    return bends, np.cumsum([0, *(width * slope for width, slope in pieces)])


@given(first_bends, steps, st.integers(1, 6), st.booleans())
def test_candidates_lie_on_either_side_of_equal_rises(
    first: int, pieces: list[tuple[int, int]], rises: int, is_few: bool
) -> None:
    bends, hits = curve_of(first, pieces)
    wanted = np.linspace(0, float(hits[-1]), rises + 1)[1:]
    after = np.minimum(np.searchsorted(hits, wanted), len(hits) - 1)
    along = (wanted - hits[after - 1]) / (hits[after] - hits[after - 1])
    below = bends[after - 1] + (along * (bends[after] - bends[after - 1])).astype(np.int64)
    near = np.clip([*below, *below + 1], bends[0], bends[-1])
    found, found_hits = np.empty((2, 2 * rises + len(bends)), np.int64)
    end = point_kernels.candidates(bends, hits, rises, is_few, found, found_hits)
    assert found_hits[:end].tolist() == np.interp(found[:end], bends, hits).tolist()
    assert found[:end].tolist() == sorted({*near.tolist(), *(bends if is_few else bends[[0, -1]]).tolist()})


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=9), st.integers(1, 4)), min_size=1
    )
)
def test_merged_rises_are_those_of_all_curves(curves: list[tuple[list[tuple[int, int]], int]]) -> None:
    expected: Counter[int] = Counter()
    runs, hits = [], []
    for points, worth in curves:
        rises = dict(points)
        runs.append(sorted(rises))
        hits.append(np.cumsum([rises[capacity] for capacity in runs[-1]], dtype=np.float64))
        for capacity, rise in rises.items():
            expected[capacity] += rise * worth
    offsets = np.cumsum([0, *map(len, runs)])
    worths = np.array([worth for _, worth in curves], np.float64)
    for dtype, merge in ((np.int64, point_kernels.merge_rises), (object, interpreted(point_kernels.merge_rises))):
        capacities: Any = np.array([capacity for run in runs for capacity in run], dtype)
        found = np.concatenate([np.empty(0), *hits])
        end = merge(offsets.copy(), capacities, found, worths, np.empty_like(capacities), np.empty_like(found))
        assert capacities[:end].tolist() == sorted(expected)
        assert found[:end].tolist() == [expected[capacity] for capacity in sorted(expected)]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(2, 9))
@example([0], 2)
@example([5, 1, 1, 7], 4)
def test_places_at_equal_rises_and_before_jumps(rises: list[int], count: int) -> None:
    hits = np.cumsum([3, *rises]).astype(np.float64)
    last = len(hits) - 1
    places = np.empty(2 * count, np.int64)
    got = places[: point_kernels.equal_rises(hits, count, places)].tolist()

    def chosen(parts: int) -> list[int]:
        wanted = hits[0] + (hits[-1] - hits[0]) * np.arange(parts + 1) / parts
        reached = np.minimum(np.searchsorted(hits, wanted), last)
        before = [one - 1 for one in reached if one and hits[one] - hits[one - 1] > (hits[-1] - hits[0]) / parts]
        return sorted({0, last, *reached.tolist(), *map(int, before)})

    assert len(got) <= count
    assert got in [*map(chosen, range(1, count)), [0, last]]
    if len(chosen(count - 1)) <= count:
        assert got == chosen(count - 1)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=12), st.data())
def test_the_largest_error_is_that_of_the_worst_place(stretches: list[tuple[int, int]], data: st.DataObject) -> None:
    units = np.cumsum([0, *(width for width, _ in stretches)])
    hits = np.cumsum([0, *(rise for _, rise in stretches)])
    last = len(stretches)
    chosen = np.array(sorted({0, last, *data.draw(st.lists(st.integers(0, last)))}))
    is_linear = data.draw(st.booleans())
    worst, rise = point_kernels.largest_errors(chosen, units, hits, is_linear)
    assert interpreted(point_kernels.largest_errors)(chosen, units.astype(object), hits, is_linear) == (worst, rise)
    is_known = is_linear | (np.diff(units) == 1)
    errors = []
    for left, right in pairwise(chosen.tolist()):
        slope = Fraction(int(hits[right] - hits[left]), int(units[right] - units[left]))
        for place in range(left, right):
            lines = [int(hits[left]) + slope * int(units[at] - units[left]) for at in (place, place + 1)]
            low, high = int(hits[place]), int(hits[place + 1])
            pairs = [(low, lines[0]), (high, lines[1])] if is_known[place] else [(high, lines[0]), (low, lines[1])]
            errors.append(max(abs(number - line) for number, line in pairs))
    assert abs(worst - max(errors)) < 1e-9
    assert rise == max(np.diff(hits[chosen]))


@given(
    st.lists(st.tuples(first_bends, st.just([]) | steps, st.integers(1, 4), st.integers(1, 3)), max_size=4),
    st.sampled_from([1, 2**62, 2**70]),
    st.data(),
)
def test_a_smallest_capacity_gives_enough_and_one_less_does_not(
    curves: list[tuple[int, list[tuple[int, int]], int, int]], scale: int, data: st.DataObject
) -> None:
    bent = [
        (*(curve_of(first, pieces) if pieces else ([], [])), charge, size) for first, pieces, charge, size in curves
    ]

    def reached(capacity: int) -> int:
        """At a capacity in parts of `scale`, hits of `scale` each."""
        hits: list[int] = [
            int(np.interp(capacity // charge, bends, hits)) * size for bends, hits, charge, size in bent if len(bends)
        ]
        return scale * sum(hits)

    enough = scale * max((int(bends[-1]) * charge for bends, _, charge, _ in bent if len(bends)), default=0)
    wanted = data.draw(st.lists(st.integers(0, reached(enough // scale)), max_size=3))
    dtype = np.int64 if scale == 1 else object
    found = np.empty(len(wanted), dtype)
    search = point_kernels.smallest_capacities
    (search if scale == 1 else interpreted(search))(
        np.cumsum([0, *(len(bends) for bends, *_ in bent)]),
        np.array([one for bends, *_ in bent for one in map(int, bends)], dtype),
        np.array([one for _, hits, *_ in bent for one in map(int, hits)], dtype),
        np.array([charge * scale for *_, charge, _ in bent], dtype),
        np.array([size * scale for *_, size in bent], dtype),
        np.array(wanted, dtype),
        enough,
        found,
    )
    for hits, capacity in zip(wanted, found.tolist(), strict=True):
        assert capacity % scale == 0
        assert reached(capacity // scale) >= hits
        assert capacity == 0 or reached(capacity // scale - 1) < hits
