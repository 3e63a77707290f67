"""Regular work of several partitions: none waits longer than it may, and no two come together."""

from __future__ import annotations

from itertools import pairwise

import pytest

from service.stagger import first_wait


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_nobody_waits_longer_than_an_interval_or_less_than_half(shift: float) -> None:
    waits = [first_wait(60, partition, shift) for partition in range(200)]
    assert min(waits) > 30
    assert max(waits) <= 60


@pytest.mark.parametrize("partitions", [2, 4, 12, 50])
@pytest.mark.parametrize("first", [0, 17])
def test_partitions_next_to_each_other_keep_apart(partitions: int, first: int) -> None:
    waits = sorted(first_wait(60, partition) for partition in range(first, first + partitions))
    assert min(after - before for before, after in pairwise(waits)) > 30 / partitions / 3


def test_a_shift_keeps_two_kinds_of_work_of_one_partition_apart() -> None:
    assert all(abs(first_wait(60, partition) - first_wait(60, partition, 0.3)) > 5 for partition in range(50))
