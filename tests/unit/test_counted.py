"""One is one."""

from __future__ import annotations

import pytest

from litehit.counted import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records")])
def test_a_number_of_things(number: int, text: str) -> None:
    assert counted(number, "record") == text
