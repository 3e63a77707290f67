from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litehit import key_table
from litehit.core import LiteHit
from litehit.curves import Int64Array
from litehit.errors import StateError, TooManyBlocks
from litehit.frozen import State
from litehit.projector import HitCurveProjector
from litehit.workload import WorkloadSpec, generate
from schemas.block_keys import BlockKeyError
from schemas.fact import HitCurve
from tests.reference import ReferenceCache, ReferenceStack, flatten
from tests.strategies import Requests, arbitrary_requests, contract_requests, steps

any_requests = contract_requests() | arbitrary_requests
slacks = st.sampled_from([0, 1, 7, 4096])
ttls = st.sampled_from([0, 1, 2, 5, 11])


def last_curve(requests: Requests) -> HitCurve:
    core = LiteHit()
    curves = [core.process_request(request) for request in requests]
    return curves[-1]


@pytest.mark.parametrize(
    ("requests", "curve"),
    [
        ([[1, 2, 3], [1, 7, 3]], ((1, 1),)),
        ([[1, 2], [1, 3, 2], [2]], ((3, 1),)),
        ([[1, 2, 3], [1], [3]], ((3, 1),)),
        ([[1, 2], [2, 2, 1, 2]], ((2, 4),)),
        ([[1, 2], [2, 2, 1, 2], [2, 1]], ((1, 2),)),
        ([[key] for key in range(10_000)] + [[0]], ((10_000, 1),)),
    ],
)
def test_vectors(requests: Requests, curve: HitCurve) -> None:
    assert last_curve(requests) == curve


def test_worked_example() -> None:
    a, b, c, d, e = range(1, 6)
    core = LiteHit()
    rows: list[tuple[list[int], HitCurve, list[int]]] = [
        ([a, b, c], (), [a, b, c]),
        ([a, b, d], ((1, 2),), [a, b, d, c]),
        ([a, b, c], ((1, 2), (4, 1)), [a, b, c, d]),
        ([a, e], ((1, 1),), [a, e, b, c, d]),
        ([a, e], ((1, 2),), [a, e, b, c, d]),
    ]
    for keys, curve, order in rows:
        assert core.process_request(keys) == curve
        assert core.recency_order().tolist() == order


def test_ttl_vector() -> None:
    core = LiteHit(ttl=2000)
    assert core.process_request([1, 2, 3], 1000) == ()
    assert core.process_request([1, 2, 3], 2999) == ((1, 3),)
    assert core.process_request([1, 2, 3], 4999) == ()
    assert HitCurveProjector.project_infinite(core.process_request([1, 2, 3], 5000)) == 3


def test_a_block_accessed_exactly_a_ttl_ago_is_expired() -> None:
    second = 1_000_000_000
    core = LiteHit(ttl=second)
    core.process_request([1], 0)
    assert core.process_request([1], 9 * second // 10) == ((1, 1),)
    assert core.process_request([1], 19 * second // 10) == ()


@settings(max_examples=400)
@given(requests=any_requests, times=steps, ttl=ttls, slack=slacks)
def test_equals_the_reference(requests: Requests, times: list[int], ttl: int, slack: int) -> None:
    core = LiteHit(ttl, slack_positions=slack)
    reference = ReferenceStack(ttl)
    now = 0
    for request, step in zip(requests, times, strict=False):
        now += step
        assert core.process_request(request, now) == reference.process_request(request, now)
        assert core.recency_order().tolist() == reference.alive_blocks()
        assert core.current_unique_blocks() == len(reference.alive_blocks())


@given(requests=any_requests, times=steps, ttl=ttls, slack=slacks, cut=st.integers(0, 25))
def test_a_state_round_trip_changes_nothing(
    requests: Requests, times: list[int], ttl: int, slack: int, cut: int
) -> None:
    straight = LiteHit(ttl)
    broken = LiteHit(ttl, slack_positions=slack)
    now = 0
    for number, (request, step) in enumerate(zip(requests, times, strict=False)):
        now += step
        if number == cut:
            broken = LiteHit.from_state(broken.state(), slack_positions=slack)
        assert broken.process_request(request, now) == straight.process_request(request, now)
        assert np.array_equal(broken.recency_order(), straight.recency_order())


@given(requests=any_requests, times=steps, ttl=ttls, cuts=st.lists(st.integers(0, 25), max_size=3))
def test_any_batching_gives_the_same_curves(requests: Requests, times: list[int], ttl: int, cuts: list[int]) -> None:
    requests = requests[:25]
    clock = np.cumsum(np.array(times[: len(requests)], np.int64), dtype=np.int64)
    one_by_one = LiteHit(ttl)
    expected = [one_by_one.process_request(keys, int(now)) for keys, now in zip(requests, clock, strict=True)]
    batched = LiteHit(ttl, slack_positions=0)
    found: list[HitCurve] = []
    bounds = [0, *sorted(cut for cut in cuts if cut < len(requests)), len(requests)]
    for low, high in pairwise(bounds):
        found += batched.process_batch(*flatten(requests[low:high]), clock[low:high])
    assert found == expected


@given(requests=contract_requests(), capacities=st.lists(st.integers(0, 40), max_size=4))
def test_a_contract_curve_gives_the_hits_of_a_real_cache(requests: Requests, capacities: list[int]) -> None:
    core = LiteHit()
    curves = [core.process_request(request) for request in requests]
    for capacity in [0, 1, 2, 4, 9, None, *capacities]:
        cache = ReferenceCache(capacity)
        hits = [cache.hits(request) for request in requests]
        blocks = -1 if capacity is None else capacity
        assert [HitCurveProjector.project_blocks(curve, blocks) for curve in curves] == hits


@given(requests=arbitrary_requests)
def test_input_that_breaks_the_contract_is_never_optimistic_and_exact_at_infinity(requests: Requests) -> None:
    core = LiteHit()
    curves = [core.process_request(request) for request in requests]
    for capacity in (0, 1, 2, 4, 9):
        cache = ReferenceCache(capacity)
        for request, curve in zip(requests, curves, strict=True):
            assert HitCurveProjector.project_blocks(curve, capacity) <= cache.hits(request)
    cache = ReferenceCache(None)
    assert [HitCurveProjector.project_infinite(curve) for curve in curves] == [cache.hits(r) for r in requests]


@pytest.mark.parametrize("ttl", [0, 40_000_000_000])
@pytest.mark.parametrize("slack", [0, 4096])
def test_long_chains_equal_the_reference(ttl: int, slack: int) -> None:
    """Runs longer than a vector, a word and a group, with forks, returns and growth of every array."""
    trace = generate(
        WorkloadSpec(requests=90, seed=7, block_size_tokens=16, turn_tokens=1500, mean_turns=6, system_prompts=3)
    )
    core, reference = LiteHit(ttl, slack_positions=slack), ReferenceStack(ttl)
    for request in trace.requests():
        keys = request.block_keys.tolist()
        assert core.process_request(keys, request.timestamp_ns) == reference.process_request(keys, request.timestamp_ns)
    assert core.recency_order().tolist() == reference.alive_blocks()


def test_backwards_a_trace_has_the_same_totals() -> None:
    trace = generate(WorkloadSpec(requests=2_000, seed=3))
    requests = [trace.keys[low:high] for low, high in zip(trace.offsets[:-1], trace.offsets[1:], strict=True)]

    def totals(order: list[Int64Array]) -> list[int]:
        core = LiteHit()
        offsets = np.zeros(len(order) + 1, np.int64)
        np.cumsum([len(keys) for keys in order], out=offsets[1:])
        curves = core.process_batch(np.concatenate(order), offsets)
        return [
            int(HitCurveProjector.project_blocks_batch(curves, blocks).sum())
            for blocks in (1, 10, 100, 1_000, 3_000, 10_000, -1)
        ]

    assert totals(requests) == totals(requests[::-1])


def test_unsigned_keys_are_the_same_keys() -> None:
    keys = np.array([2**64 - 1, 2**53 + 1, 2**53], np.uint64)
    core = LiteHit()
    core.process_request(keys)
    assert list(core.process_batch(keys, np.array([0, 3]))) == [((1, 3),)]
    assert core.process_request([-1, 2**53 + 1, 2**53]) == ((1, 3),)
    assert core.current_unique_blocks() == 3


def test_arrays_of_other_types_are_refused() -> None:
    keys, offsets, times = np.array([1, 1]), np.array([0, 1, 2]), np.array([0, 4])
    core = LiteHit(ttl=5)
    with pytest.raises(BlockKeyError, match=r"block_keys\[0\] = 1.0 is a float"):
        core.process_batch(keys.astype(np.float64), offsets, times)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="offsets has the type int32; give int64"):
        core.process_batch(keys, offsets.astype(np.int32), times)
    with pytest.raises(ValueError, match="times has the type float64; give int64"):
        core.process_batch(keys, offsets, times.astype(np.float64))
    assert core.current_unique_blocks() == 0


def test_a_core_that_is_full_names_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("litehit.core.MAX_BLOCKS", 70)
    core = LiteHit()
    core.process_request(list(range(64)))
    with pytest.raises(TooManyBlocks, match="to 71 unique blocks, more than the engine's limit of 70") as caught:
        core.process_batch(*flatten([[1], [65, 66], [70, 71, 72, 73, 74]]))
    assert caught.value.request == 2


def test_after_a_million_keys_and_many_compactions_the_first_key_still_hits() -> None:
    core = LiteHit(slack_positions=0)
    keys = np.arange(1_000_000, dtype=np.int64)
    core.process_batch(keys, np.arange(1_000_001, dtype=np.int64))
    assert core.process_request([0]) == ((1_000_000, 1),)
    assert core.current_unique_blocks() == 1_000_000


def test_memory_follows_the_unique_blocks_and_not_the_accesses() -> None:
    core = LiteHit()
    rng = np.random.default_rng(1)
    sizes = []
    for _ in range(3):
        keys = rng.integers(0, 50_000, 1_000_000)
        core.process_batch(keys, np.arange(0, 1_000_001, 10, dtype=np.int64))
        sizes.append(core.memory_usage_bytes())
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0] <= 40 * core.current_unique_blocks() + 64 * 1024


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("unique", [3_000, 52_428, 52_430, 60_000, 104_000, 105_000, 150_001])
def test_at_most_forty_bytes_a_unique_block_at_any_size(unique: int, step: int) -> None:
    core = LiteHit()
    core.process_batch(step * np.arange(unique, dtype=np.int64), np.arange(0, unique + 1, dtype=np.int64))
    fixed = 16 * 1024  # the smallest table and the slack of positions
    assert core.memory_usage_bytes() <= 40 * unique + fixed


def test_expired_blocks_leave_the_memory() -> None:
    core = LiteHit(ttl=10)
    core.process_batch(np.arange(200_000, dtype=np.int64), np.arange(0, 200_001, 100), np.zeros(2_000, np.int64))
    full = core.memory_usage_bytes()
    core.advance_time(10)
    assert core.current_unique_blocks() == 0
    assert core.recency_order().tolist() == []
    assert core.memory_usage_bytes() < full / 4


@pytest.mark.parametrize("direction", [1, -1])
def test_a_stream_under_a_ttl_stays_bounded(direction: int) -> None:
    core = LiteHit(ttl=1_000)
    sizes = []
    for step in range(40):
        keys = direction * np.arange(step * 10_000, (step + 1) * 10_000, dtype=np.int64)
        core.process_batch(keys, np.arange(0, 10_001, 100, dtype=np.int64), np.arange(100) + step * 1_000)
        sizes.append(core.memory_usage_bytes())
    assert max(sizes) == max(sizes[:10])


def test_time_that_goes_back_is_clamped_and_counted() -> None:
    core = LiteHit(ttl=10)
    core.process_request([1], 100)
    assert core.process_request([1], 5) == ((1, 1),)  # at 100, not at 5
    assert core.clamped_requests() == 1
    assert core.process_request([1], 109) == ((1, 1),)
    core.advance_time(0)
    assert core.current_unique_blocks() == 1


def test_the_whole_range_of_times_is_exact() -> None:
    core = LiteHit(ttl=2**63 - 1)
    core.process_request([1], -(2**63))
    assert core.process_request([1], -2) == ((1, 1),)
    assert core.process_request([1], 2**63 - 3) == ()  # 2**63 - 1 later: exactly the TTL


def test_a_request_without_blocks_is_a_request() -> None:
    core = LiteHit(ttl=5)
    assert core.process_request([], 7) == ()
    curves = core.process_batch(*flatten([[], [1], [], [1]]), np.array([7, 8, 9, 10]))
    assert list(curves) == [(), (), (), ((1, 1),)]


def test_signed_and_unsigned_name_the_same_key_and_neighbours_differ() -> None:
    core = LiteHit()
    core.process_request([-1])
    assert core.process_request([18446744073709551615]) == ((1, 1),)
    core.process_request([9007199254740992])
    assert core.process_request([9007199254740993]) == ()


def test_reset_forgets_blocks_and_time() -> None:
    core = LiteHit(ttl=10)
    core.process_request([1, 2], 1_000)
    core.reset()
    assert core.current_unique_blocks() == 0
    assert core.process_request([1, 2], 5) == ()
    assert core.clamped_requests() == 0


def test_keys_that_collide_in_the_table_are_told_apart() -> None:
    """More keys than hash values differ in a small table's homes, in both directions of growth."""
    rng = random.Random(4)
    requests = [[rng.randrange(2**63) for _ in range(3)] for _ in range(3_000)]
    core = LiteHit()
    core.process_batch(*flatten(requests))
    again = core.process_batch(*flatten(requests))
    assert [HitCurveProjector.project_infinite(curve) for curve in again] == [3] * 3_000


@pytest.mark.parametrize("value", [1.0, True, "one", None])
def test_a_key_that_is_no_integer_is_refused(value: object) -> None:
    with pytest.raises(BlockKeyError, match=r"block_keys\[1\]"):
        LiteHit().process_request([1, value])  # type: ignore[list-item]


def test_arguments_that_do_not_fit_together_are_refused() -> None:
    core = LiteHit()
    with pytest.raises(ValueError, match="ttl -1"):
        LiteHit(ttl=-1)
    with pytest.raises(ValueError, match="offsets must ascend from 0 to 2"):
        core.process_batch(np.array([1, 2]), np.array([0, 1]))
    with pytest.raises(ValueError, match="offsets must ascend"):
        core.process_batch(np.array([1, 2]), np.array([0, 2, 1, 2]))
    with pytest.raises(ValueError, match="2 times for 1 requests"):
        core.process_batch(np.array([1, 2]), np.array([0, 2]), np.array([1, 2]))
    assert core.current_unique_blocks() == 0


def twins(state: State) -> State:
    """Keys of which two are equal, and slots that fit them."""
    keys = np.array([1, 2, 3, 3])
    slots = np.empty(4, np.uint64)
    key_table.slots_of(keys, 4, slots)
    return {**state, "keys": keys, "slots": np.sort(slots)}


def test_a_state_is_made_while_the_core_goes_on() -> None:
    core = LiteHit(ttl=10)
    core.process_batch(*flatten([[1, 2, 3], [4]]), np.array([5, 6]))
    frozen = core.freeze()
    core.process_batch(*flatten([[7, 4, 3], list(range(5000))]), np.array([20, 22]))
    then = LiteHit.from_state(frozen.state)
    assert then.recency_order().tolist() == [4, 1, 2, 3]
    assert core.current_unique_blocks() == 5000


def test_a_table_filled_in_order_wraps_around_its_end() -> None:
    """Keys that crowd the last slots of a full table."""
    table = key_table.allocate(1024)
    candidates = np.arange(300_000)
    slots = np.empty(len(candidates), np.uint64)
    key_table.slots_of(candidates, len(candidates), slots)
    keys = np.ascontiguousarray(candidates[slots >> np.uint64(54) >= np.uint64(1021)])[:700]
    slots = np.empty(len(keys), np.uint64)
    key_table.slots_of(keys, len(keys), slots)
    slots.sort()
    assert key_table.fill_sorted(table, keys, slots) == -1
    assert [key_table.find(table, keys, key) for key in keys] == list(range(len(keys)))
    assert key_table.find(table, keys, -1) == -1


def test_a_damaged_state_is_refused() -> None:
    core = LiteHit(ttl=10)
    core.process_batch(*flatten([[1, 2, 3], [4]]), np.array([5, 6]))
    good = core.state()
    cases = {
        "keys": (np.array([5, 6, 7, 8]), r"slots\[0\] = 0x[0-9a-f]+ fits neither keys"),
        "slots": (good["slots"][[0, 2, 1, 3]], r"slots\[2\] = 0x[0-9a-f]+ fits neither keys"),
        "positions": (np.array([0, 1, 2, 2], np.int32), "no permutation"),
        "epoch_times": (np.array([5, 7]), "do not ascend to the clock"),
        "epoch_positions": (np.array([0, 4]), "do not ascend from 0"),
        "clock": (np.array([6, 7]), "2 elements"),
        "ttl": (np.array([0]), "epochs for 4 blocks with ttl 0"),
    }
    for name, (array, message) in cases.items():
        with pytest.raises(StateError, match=message):
            LiteHit.from_state({**good, name: array})
        with pytest.raises(StateError, match=f"{name} is missing"):
            LiteHit.from_state({key: value for key, value in good.items() if key != name})
    with pytest.raises(StateError, match=r"slots\[\d\] .* fits neither keys nor the slots before"):
        LiteHit.from_state({**good, **twins(good)})
    with pytest.raises(StateError, match="1-d int64"):
        LiteHit.from_state({**good, "keys": good["keys"].astype(np.float64)})
    assert np.array_equal(LiteHit.from_state(good).recency_order(), core.recency_order())
