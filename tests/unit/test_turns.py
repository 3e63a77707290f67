"""Turns: so many at a time, so many waiting, and the rest refused."""

from __future__ import annotations

import queue
import threading

import pytest

from service.api.turns import TooManyCalls, Turns


def test_one_more_than_may_is_refused_and_a_turn_is_given_back() -> None:
    turns = Turns(2)
    with turns.turn():
        with turns.turn(), pytest.raises(TooManyCalls, match="2 calls are reading facts already, which is"):
            turns.turn().__enter__()
        with turns.turn():
            pass


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), turns.turn():
            raise ZeroDivisionError


def test_one_may_wait_and_the_next_is_refused() -> None:
    turns = Turns(1, queue=1)
    ended: queue.Queue[str] = queue.Queue()

    def call() -> None:
        try:
            with turns.turn():
                ended.put("had a turn")
        except TooManyCalls as error:
            ended.put(str(error))

    callers = [threading.Thread(target=call) for _ in range(2)]
    with turns.turn():
        for one in callers:
            one.start()
        assert ended.get(timeout=60) == "1 calls are reading facts already and 1 wait to, which is all that may"
    assert ended.get(timeout=60) == "had a turn"
    for one in callers:
        one.join(60)
