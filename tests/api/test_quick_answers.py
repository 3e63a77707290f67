"""What is answered in the event loop: totals that are summed already, up to a bound, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.api.answering import QUICK_NUMBERS
from service.api.index import FactIndex
from service.archive.segment import ChainKey
from tests.api_doubles import Client
from tests.histories import fact, rows_of

CHAIN = ChainKey("facts", "g", 0)
GROUPS = 16
MOST = QUICK_NUMBERS // GROUPS  # capacities
PLAIN = {"Accept-Encoding": "identity"}

Asked = Sequence[tuple[str, Any]]


def capacities(count: int) -> Asked:
    return [("capacity_gb", place / 8) for place in range(count)]


def named(*instance_ids: str) -> Asked:
    return [("instance_id", one) for one in instance_ids]


@pytest.fixture
def filled(index: FactIndex) -> FactIndex:
    facts = [fact(10 + place, (1, 4), instance=f"i{place}", tokens=50) for place in range(GROUPS)]
    index.appended(CHAIN, rows_of(facts, 0))
    return index


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which worker threads' tasks ran."""
    used = []
    select = FactIndex.select

    def recorded(*arguments: Any) -> Any:
        used.append(threading.get_ident())
        return select(*arguments)

    monkeypatch.setattr(FactIndex, "select", recorded)
    return used


@pytest.mark.parametrize(
    "asked",
    [
        capacities(1),
        capacities(MOST),
        [*capacities(MOST), *named("i3", "i0")],
        [*capacities(1), ("from", 10), ("to", 10 + GROUPS)],
        [*capacities(1), *named(*["i1"] * QUICK_NUMBERS)],
    ],
)
def test_totals_are_read_in_the_loop_and_say_the_same_as_in_a_thread(
    filled: FactIndex, client: Client, threads: list[int], asked: Asked
) -> None:
    quick = client.get("/query", asked, headers=PLAIN)
    assert threads == []
    assert quick.status_code == 200
    in_a_thread = client.get("/query", asked, headers={"Accept-Encoding": "gzip"})
    assert threads != []
    assert threads[0] != threading.get_ident()
    assert quick.content == in_a_thread.content
    assert quick.headers["etag"] == in_a_thread.headers["etag"]


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (capacities(MOST + 1), 200),  # too many numbers
        ([*capacities(1), ("from", 11)], 200),  # a window that cuts the facts
        ([*capacities(1), *named("i1", "nobody")], 404),  # names like it are looked for
        ([*capacities(1), *named(*["i1"] * (QUICK_NUMBERS + 1))], 200),
    ],
)
def test_everything_else_is_left_to_a_thread(
    filled: FactIndex, client: Client, threads: list[int], asked: Asked, status: int
) -> None:
    assert client.get("/query", asked, headers=PLAIN).status_code == status
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


def test_facts_that_arrive_meanwhile_do_not_bring_rows_into_the_loop(
    filled: FactIndex, connect: Callable[..., Client], threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that was whole when the call was judged, and is not when it is answered."""
    at_hand = FactIndex.at_hand

    def then_facts_arrive(index: FactIndex, *arguments: Any) -> Any:
        selection = at_hand(index, *arguments)
        index.appended(CHAIN, rows_of([fact(99)], GROUPS))
        return selection

    monkeypatch.setattr(FactIndex, "at_hand", then_facts_arrive)
    answer = connect(filled).get("/query", [*capacities(1), ("to", 50)], headers=PLAIN).json()
    assert threads == []
    assert (answer["total"]["requests"], answer["as_of"][0]["next_offset"]) == (GROUPS, GROUPS)
