"""The ledger balances, batch by batch and in sum."""

from __future__ import annotations

import pytest

from schemas.dead_letter import Reason
from service.lanes.counts import Ignored, LaneCounts


def test_ledgers_add_up_kind_by_kind() -> None:
    first = LaneCounts(5, 3, {Ignored.WRITE: 1}, {Reason.MALFORMED_JSON: 1}, 2)
    second = LaneCounts(7, 1, {Ignored.WRITE: 2, Ignored.REPEAT: 1}, {Reason.MALFORMED_JSON: 2, Reason.KEY_TYPE: 1}, 0)
    ignored = {Ignored.WRITE: 3, Ignored.REPEAT: 1}
    assert first + second == LaneCounts(12, 4, ignored, {Reason.MALFORMED_JSON: 3, Reason.KEY_TYPE: 1}, 2)
    assert LaneCounts() + first == first


def test_a_record_that_is_not_accounted_for_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="5 records consumed, 4 accounted for"):
        LaneCounts(5, 3, {Ignored.WRITE: 1})
