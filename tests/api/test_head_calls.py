"""HEAD: the headers of GET, no body, and no work for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from service.api.fact_log import FactLog
from service.api.index import FactIndex
from service.api.open_facts import OpenFacts
from service.archive.catalog import Catalog
from service.archive.open_store import open_store
from tests.api_doubles import Client
from tests.histories import CHAINS, fact, rows_of


def test_every_call_answers_head_with_the_headers_of_get(client: Client, index: FactIndex) -> None:
    index.appended(CHAINS[1], rows_of([fact(5, (1, 2))], 0))
    for path in ("/query?capacity_gb=1", "/curve?points=9", "/capacity?of_ceiling=.5", "/instances", "/healthz", "/"):
        get, head = client.request("GET", path), client.request("HEAD", path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers == get.headers, path


def test_errors_too(client: Client) -> None:
    get, head = client.request("GET", "/query"), client.request("HEAD", "/query")
    assert (head.status_code, head.content) == (422, b"")
    assert head.headers == get.headers
    known = client.request("HEAD", "/query?capacity_gb=1", headers={"If-None-Match": "*"})
    assert (known.status_code, known.content) == (304, b"")


def test_a_call_that_has_turns_gives_its_own_back(
    connect: Callable[..., Client], index: FactIndex, tmp_path: Path
) -> None:
    client = connect(index, log=FactLog(Catalog(open_store(str(tmp_path))), OpenFacts()))
    for _ in range(20):
        assert client.request("HEAD", "/query/requests?capacity_gb=1").status_code == 200
    assert client.request("GET", "/query/requests?capacity_gb=1").status_code == 200
