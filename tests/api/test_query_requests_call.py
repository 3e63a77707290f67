"""`GET /query/requests`: the lines of `litehit query`, streamed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from litehit.query import query
from service.archive.errors import NotFound
from service.archive.reader import ArchiveReader, FactFilter
from service.archive.segment import ChainKey
from tests.api_archive import ApiArchive
from tests.api_doubles import Client
from tests.archive_facts import made_fact

OLD, FIRST, SECOND = ChainKey("f", "z-old", 0), ChainKey("f", "a-new", 0), ChainKey("f", "a-new", 1)


@pytest.fixture
def archive(tmp_path: Path) -> ApiArchive:
    made = ApiArchive(tmp_path)
    for number, chain in enumerate((OLD, FIRST, FIRST, SECOND)):
        made.append(chain, [made_fact(100 * number + place) for place in range(7)])
        made.publish(chain)
    made.follow()
    return made


@pytest.fixture
def client(archive: ApiArchive) -> Iterator[Client]:
    made = Client(archive.app)
    yield made
    made.close()


def expected(archive: ApiArchive, capacities: list[float], wanted: FactFilter | None = None) -> bytes:
    sink = io.BytesIO()
    batches = ArchiveReader(archive.store.url).batches(wanted or FactFilter())
    query((batch.facts for batch in batches), capacities, sink)
    return sink.getvalue()


def test_they_are_the_lines_of_the_command_line_over_the_same_store(archive: ApiArchive, client: Client) -> None:
    response = client.get("/query/requests", [("capacity_gb", 1), ("capacity_gb", -1)])
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.content == expected(archive, [1.0, -1.0])


def test_windows_instances_and_another_charge(archive: ApiArchive, client: Client) -> None:
    begin, end = made_fact(3).timestamp_ns, made_fact(203).timestamp_ns
    asked = [("from", begin), ("to", end), ("instance_id", "model-1"), ("capacity_gb", 2)]
    response = client.get("/query/requests", asked)
    assert response.content == expected(archive, [2.0], FactFilter(begin, end, ["model-1"]))
    lines = client.get("/query/requests", [*asked, ("block_bytes", 2**21)]).text.splitlines()
    answer = client.get("/query", [*asked, ("block_bytes", 2**21)]).json()["total"]
    total = json.loads(lines[-1])
    assert {name: total[name] for name in total if name != "summary"} == {
        name: answer[name] for name in list(total)[1:]
    }


def test_facts_of_the_open_tail_come_last(archive: ApiArchive, client: Client) -> None:
    archive.append(SECOND, [made_fact(900), made_fact(901)])
    lines = client.get("/query/requests", [("capacity_gb", 1)]).text.splitlines()
    assert [json.loads(line)["trace_id"] for line in lines[28:30]] == ["chat-900", "chat-901"]
    assert json.loads(lines[-1])["requests"] == 30


def test_segments_that_are_merged_while_they_are_read(archive: ApiArchive, client: Client) -> None:
    chains = archive.log.pin()
    pinned = next(one for one in chains if one.chain.key == FIRST)
    rows = archive.log.read(pinned, FactFilter())
    got = list(next(rows).facts)
    archive.merge(FIRST)
    got += [fact for batch in rows for fact in batch.facts]
    assert got == archive.facts[FIRST]
    assert client.get("/query/requests", [("capacity_gb", 1)]).content == expected(archive, [1.0])


def test_a_segment_that_is_gone_is_told_before_the_answer_begins(
    archive: ApiArchive, client: Client, tmp_path: Path
) -> None:
    (tmp_path / archive.catalog.view.chain(OLD).segments[0].path).unlink()
    response = client.get("/query/requests", [("capacity_gb", 1)])
    assert response.status_code == 503
    assert response.json()["type"] == "urn:litehit:problem:store-unusable"
    with pytest.raises(NotFound):
        list(archive.log.read(archive.log.pin()[0], FactFilter()))


def test_it_is_streamed_and_compressed_on_the_way(archive: ApiArchive, client: Client) -> None:
    response = client.get("/query/requests", [("capacity_gb", 1)], headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert "content-length" not in response.headers
    assert response.content == expected(archive, [1.0])
