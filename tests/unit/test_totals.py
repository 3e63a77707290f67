from __future__ import annotations

from litehit.totals import SlotTotals


def test_a_rate_is_a_quotient_of_sums() -> None:
    totals = SlotTotals((1.0,))
    totals.add(requests=1, input_tokens=10, hit_blocks=[10], ceiling_blocks=10, block_size_tokens=1)
    totals.add(requests=1, input_tokens=990, hit_blocks=[0], ceiling_blocks=495, block_size_tokens=2)
    assert totals.hit_rates == [0.01]
    assert totals.ceiling_rate == 1.0
    assert (totals.hit_blocks, totals.hit_tokens) == ([10], [10])
    assert (totals.ceiling_blocks, totals.ceiling_tokens) == (505, 1000)


def test_without_tokens_the_rate_is_0() -> None:
    totals = SlotTotals((1.0, -1.0))
    assert totals.hit_rates == [0.0, 0.0]
    assert totals.ceiling_rate == 0.0
    assert totals.of_ceiling == [1.0, 1.0]  # nothing could be hit, and nothing of that is missed


def test_merging_adds_everything() -> None:
    left, right, both = SlotTotals((1.0, 2.0)), SlotTotals((1.0, 2.0)), SlotTotals((1.0, 2.0))
    for totals in (left, both):
        totals.add(requests=3, input_tokens=100, hit_blocks=[1, 2], ceiling_blocks=3, block_size_tokens=16)
    for totals in (right, both):
        totals.add(requests=5, input_tokens=2**64, hit_blocks=[7, 8], ceiling_blocks=9, block_size_tokens=4)
    left.merge(right)
    assert left == both
    assert right.requests == 5


def test_a_summary_has_the_fields_of_the_query() -> None:
    totals = SlotTotals((1.0, -1.0))
    totals.add(requests=2, input_tokens=64, hit_blocks=[1, 3], ceiling_blocks=3, block_size_tokens=16)
    assert totals.summary() == {
        "requests": 2,
        "total_input_tokens": 64,
        "capacity_gb": (1.0, -1.0),
        "total_hit_blocks": [1, 3],
        "total_hit_tokens": [16, 48],
        "hit_rates": [0.25, 0.75],
        "of_ceiling": [1 / 3, 1.0],
        "ceiling": {"hit_blocks": 3, "hit_tokens": 48, "hit_rate": 0.75},
    }
