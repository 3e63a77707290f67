"""How much capacity a share of all hits needs."""

from __future__ import annotations

from service.api.hit_function import HitFunction
from service.api.index import FactIndex
from service.api.spread import GAUGED_SHARES, InstanceSpreads, spread
from service.api.windows import TimeWindow
from service.archive.segment import ChainKey
from tests.api_doubles import Segments
from tests.histories import QUARTER_GB, fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def index_of(*instances: str) -> FactIndex:
    index = FactIndex(Segments(), window_rows=10)
    index.loaded()
    index.appended(CHAIN, rows_of([fact(1, (1, 10), instance=one) for one in instances], 0))
    return index


def test_quantiles_of_the_hits() -> None:
    function = HitFunction(index_of("a").select(TimeWindow(), None).groups)
    blocks = [capacity // QUARTER_GB for capacity in spread(function, ["0", "0.05", "0.1", "0.11", "0.5", "0.95", "1"])]
    assert blocks == [0, 1, 1, 2, 5, 10, 10]


def test_an_instance_without_hits_needs_nothing() -> None:
    assert spread(HitFunction([]), GAUGED_SHARES) == [0] * 6


def test_what_one_refresh_does_not_reach_comes_first_in_the_next() -> None:
    index = index_of("a", "b", "c")
    spreads = InstanceSpreads(index, seconds=2.5, clock=Clock())  # two of them: a second a look
    spreads.refresh()
    assert list(spreads.capacities()) == ["a", "b"]
    spreads.refresh()
    assert spreads.capacities() == {
        one: dict(zip(GAUGED_SHARES, [blocks * QUARTER_GB for blocks in (6, 8, 9, 10, 10, 10)], strict=True))
        for one in "abc"
    }
    index.appended(CHAIN, rows_of([fact(2, (1, 20), instance=one) for one in "abc"], 3))
    spreads.refresh()
    assert [one["0.995"] // QUARTER_GB for one in spreads.capacities().values()] == [20, 20, 10]
    spreads.refresh()
    assert [one["0.995"] // QUARTER_GB for one in spreads.capacities().values()] == [20, 20, 20]


def test_before_the_index_has_loaded_there_is_nothing() -> None:
    spreads = InstanceSpreads(FactIndex(Segments(), window_rows=10))
    spreads.refresh()
    assert spreads.capacities() == {}
