"""A call that does not return is left behind; any other is as if it had been made directly."""

from __future__ import annotations

import threading

import pytest

from service.lanes.bounded_call import NotReturned, bounded


def test_what_a_call_returns_or_raises_comes_through() -> None:
    assert bounded(lambda: 7, 10) == 7
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 // 0, 10)


def test_a_call_that_does_not_return_is_left_behind() -> None:
    released = threading.Event()
    try:
        with pytest.raises(NotReturned):
            bounded(released.wait, 0.01)
    finally:
        released.set()
