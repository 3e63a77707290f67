"""`GET /facts`: every fact once, in order, page by page, whatever becomes of the files meanwhile."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.fact import RequestFact
from service.api import fact_page
from service.api.cursor import decode_cursor, encode_cursor
from service.archive.reader import FactFilter
from service.archive.segment import ChainKey, segment_path
from tests.api_archive import ApiArchive
from tests.api_doubles import Client
from tests.archive_facts import made_fact

FIRST, SECOND = ChainKey("litehit.facts", "g1", 0), ChainKey("litehit.facts", "g1", 1)


@pytest.fixture
def archive(tmp_path: Path) -> ApiArchive:
    """Two partitions of facts in segments and tails."""
    made = ApiArchive(tmp_path)
    for number, count in enumerate((3, 4, 2)):
        made.append(FIRST, [made_fact(10 * number + place) for place in range(count)])
        if number < 2:
            made.publish(FIRST)
    made.append(SECOND, [made_fact(100 + place) for place in range(5)])
    return made


@pytest.fixture
def client(archive: ApiArchive) -> Iterator[Client]:
    made = Client(archive.app)
    yield made
    made.close()


def lines(facts: list[RequestFact]) -> bytes:
    return b"".join(fact.to_json() + b"\n" for fact in facts)


def pages(client: Client, *asked: tuple[str, object]) -> Iterator[httpx.Response]:
    cursor: list[tuple[str, object]] = []
    while True:
        response = client.get("/facts", [*asked, *cursor])
        assert response.status_code == 200, response.text
        yield response
        if "link" not in response.headers:
            return
        link = response.headers["link"]
        assert link.endswith('>; rel="next"')
        following = httpx.URL("http://api/facts").join(link.split(">")[0][1:])
        assert following.params["cursor"] == response.headers["litehit-cursor"]
        cursor = [("cursor", following.params["cursor"])]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_give_every_fact_once_as_it_stands_on_the_topic(archive: ApiArchive, client: Client, limit: int) -> None:
    answers = list(pages(client, ("limit", limit)))
    assert b"".join(one.content for one in answers) == lines(archive.facts[FIRST] + archive.facts[SECOND])
    assert all(one.headers["content-type"] == "application/x-ndjson" for one in answers)
    assert all(one.content.count(b"\n") == limit for one in answers[:-1])
    reached = {"0": [0, 9], "1": [0, 5]}
    assert json.loads(answers[0].headers["litehit-as-of"]) == {FIRST.topic: {FIRST.generation: reached}}


def test_a_file_that_cannot_be_read_is_told_in_the_headers(archive: ApiArchive, client: Client) -> None:
    before = client.get("/facts").headers
    place = ChainKey(FIRST.topic, FIRST.generation, 2)
    archive.store.create(segment_path(place, 0), b"no Parquet")
    archive.follow()
    after = client.get("/facts").headers
    (partitions,) = json.loads(after["litehit-as-of"])[FIRST.topic].values()
    assert partitions == {"0": [0, 9], "1": [0, 5], "2": [0, 0, [0, None]]}
    assert after["etag"] != before["etag"]


def test_a_cursor_survives_merged_segments_and_waits_for_facts_to_come(archive: ApiArchive, client: Client) -> None:
    first = client.get("/facts", [("limit", 5)])
    archive.follow()
    archive.publish(FIRST)
    archive.merge(FIRST)  # nobody has looked since
    rest = [one.content for one in pages(client, ("limit", 100), ("cursor", first.headers["litehit-cursor"]))]
    assert first.content + b"".join(rest) == lines(archive.facts[FIRST] + archive.facts[SECOND])
    end = client.get("/facts", [("limit", 100)]).headers["litehit-cursor"]
    assert client.get("/facts", [("cursor", end)]).content == b""
    more = [made_fact(500), made_fact(501)]
    archive.append(FIRST, more)
    assert client.get("/facts", [("cursor", end)]).content == lines(more)


def test_windows_and_instances(archive: ApiArchive, client: Client) -> None:
    facts = archive.facts[FIRST] + archive.facts[SECOND]
    begin, end = facts[2].timestamp_ns, facts[10].timestamp_ns
    asked = [("from", begin), ("to", end), ("instance_id", "model-1"), ("instance_id", "model-2"), ("limit", 2)]
    wanted = [fact for fact in facts if begin <= fact.timestamp_ns < end and fact.instance_id in {"model-1", "model-2"}]
    assert b"".join(one.content for one in pages(client, *asked)) == lines(wanted)


def test_a_page_ends_where_facts_are_large_or_time_is_up(
    archive: ApiArchive, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fact_page, "_PAGE_BYTES", 1)
    assert [one.content.count(b"\n") for one in pages(client)] == [1] * 14
    monkeypatch.undo()
    monkeypatch.setattr(fact_page, "_STEP", 4)
    chains = archive.log.pin()
    clock = iter([0.0, 0.0, 0.0, 3.0, 3.0]).__next__
    page = fact_page.read_page(archive.log, chains, FactFilter(), {}, 100, clock)
    assert (len(page.lines), page.has_more, dict(page.offsets)) == (8, True, {FIRST: 8, SECOND: 0})


def test_a_segment_that_is_gone_is_told(archive: ApiArchive, client: Client, tmp_path: Path) -> None:
    archive.follow()
    path = archive.catalog.view.chain(FIRST).segments[0].path
    (tmp_path / path).unlink()
    response = client.get("/facts")
    assert response.status_code == 503
    assert "not in the store" in response.json()["detail"]


@pytest.mark.parametrize(
    "cursor",
    ["x", "", "W10", "eyJhIjpbXX0", "eyJhIjp7ImciOnsiMCI6LTF9fX0", "é", encode_cursor({FIRST: 1})[:-3]],
)
def test_what_is_no_cursor_is_refused(client: Client, cursor: str) -> None:
    response = client.get("/facts", [("cursor", cursor)])
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["parameter"] == "cursor"
    assert "LiteHit-Cursor" in error["detail"]


@given(
    st.dictionaries(
        st.builds(ChainKey, st.text(max_size=4), st.text(max_size=4), st.integers(0, 99)), st.integers(0, 2**63 - 1)
    )
)
def test_a_cursor_comes_back(offsets: dict[ChainKey, int]) -> None:
    assert decode_cursor(encode_cursor(offsets)) == offsets


def test_a_cursor_of_many_generations_fits_a_url() -> None:
    offsets = {
        ChainKey("litehit.facts", hashlib.md5(bytes([number])).hexdigest(), partition): 10**6 + 7 * number + partition
        for number in range(150)
        for partition in range(4)
    }
    cursor = encode_cursor(offsets)
    assert len(cursor) < 8000  # of one line of a request, what common servers and proxies take
    assert decode_cursor(cursor) == offsets


def test_a_cursor_that_would_unpack_to_more_than_memory_is_refused() -> None:
    cursor = base64.urlsafe_b64encode(zlib.compress(b" " * 2**25)).decode()
    with pytest.raises(ValueError, match="is no cursor"):
        decode_cursor(cursor)


@pytest.mark.parametrize(
    ("limit", "says"), [("0", "greater than or equal to 1"), ("10001", "10,000"), ("x", "integer")]
)
def test_a_limit_is_bounded(client: Client, limit: str, says: str) -> None:
    response = client.get("/facts", [("limit", limit)])
    assert response.status_code == 422
    assert says in response.json()["detail"]


def test_an_unknown_instance_and_a_known_answer(client: Client) -> None:
    assert client.get("/facts", [("instance_id", "nobody")]).status_code == 404
    tag = client.get("/facts").headers["etag"]
    assert client.get("/facts", headers={"If-None-Match": tag}).status_code == 304
