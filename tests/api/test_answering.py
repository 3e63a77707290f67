"""Validators and compression of answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.api.index import FactIndex
from service.archive.segment import ChainKey
from tests.api_archive import ApiArchive
from tests.api_doubles import Client
from tests.histories import fact, rows_of

CHAIN = ChainKey("litehit.facts", "g1", 0)
CALLS = [
    ("/query", [("capacity_gb", 1)]),
    ("/curve", [("points", 9)]),
    ("/curve", []),
    ("/capacity", [("of_ceiling", 1)]),
]


@pytest.fixture
def filled(index: FactIndex) -> FactIndex:
    index.appended(CHAIN, rows_of([fact(10, (1, 4)), fact(20, (2, 3), (9, 2))], 0))
    return index


@pytest.mark.parametrize(("path", "asked"), CALLS)
def test_a_reader_that_has_the_answer_is_told_so_until_facts_arrive(
    filled: FactIndex, client: Client, path: str, asked: list[tuple[str, object]]
) -> None:
    tag = client.get(path, asked).headers["etag"]
    again = client.get(path, asked, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get(path, [*asked, ("from", 1)], headers={"If-None-Match": tag}).status_code == 200
    filled.appended(CHAIN, rows_of([fact(30)], 2))
    newer = client.get(path, asked, headers={"If-None-Match": tag})
    assert newer.status_code == 200
    assert newer.headers["etag"] != tag


@pytest.mark.parametrize(
    ("asked", "status"),
    [([], 304), ([("instance_id", "nobody")], 404), ([("from", 9), ("to", 9)], 422), ([("window", "1d")], 422)],
)
@pytest.mark.parametrize("path", ["/query", "/query/requests"])
def test_what_has_no_answer_is_refused_whatever_the_reader_has(
    tmp_path: Path, path: str, asked: list[tuple[str, object]], status: int
) -> None:
    archive = ApiArchive(tmp_path)
    archive.append(CHAIN, [fact(10, (1, 4))])
    client = Client(archive.app)
    response = client.get(path, [("capacity_gb", 1), *asked], headers={"If-None-Match": "*"})
    client.close()
    assert response.status_code == status


def test_another_lag_is_another_answer(filled: FactIndex, connect: Callable[..., Client]) -> None:
    lag = {CHAIN: 1}
    client = connect(filled, lag=lambda: lag)
    tag = {"If-None-Match": client.get("/query", [("capacity_gb", 1)]).headers["etag"]}
    assert client.get("/query", [("capacity_gb", 1)], headers=tag).status_code == 304
    lag[CHAIN] = 0
    assert client.get("/query", [("capacity_gb", 1)], headers=tag).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("GZIP", True), ("gzip;q=0", False), ("identity", False), ("", False)],
)
@pytest.mark.parametrize("points", [[], [("points", 50)]])
def test_an_answer_is_compressed_where_the_reader_takes_it(
    filled: FactIndex, client: Client, accepted: str, is_compressed: bool, points: list[tuple[str, int]]
) -> None:
    plain = client.get("/curve", points, headers={"Accept-Encoding": "identity"})
    sent = client.get("/curve", points, headers={"Accept-Encoding": accepted})
    assert sent.headers["vary"] == "Accept-Encoding"
    assert (sent.headers.get("content-encoding") == "gzip") == is_compressed
    assert sent.json() == plain.json()
