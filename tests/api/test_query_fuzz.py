"""No query string makes the service fail: it is answered or it is refused with a problem document."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from schemas.answers import Problem, QueryAnswer
from service.api.app import create_app
from service.api.index import FactIndex
from service.archive.segment import ChainKey
from tests.api_doubles import Client, Segments
from tests.histories import fact, rows_of

NAMES = st.sampled_from(["capacity_gb", "instance_id", "from", "to", "block_bytes"])
VALUES = (
    st.integers().map(str)
    | st.floats().map(str)
    | st.datetimes().map(lambda time: f"{time.isoformat()}Z")
    | st.sampled_from(["chat", "chat\x00", "", "1_0", "+1", " 1 ", "0x10", "１"])  # noqa: RUF001
)
ANY = st.binary(max_size=12)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    index = FactIndex(Segments(), window_rows=10)
    index.loaded()
    index.appended(ChainKey("facts", "g", 0), rows_of([fact(1, (1, 2)), fact(2, (2, 2))], 0))
    made = Client(create_app(index, registry=CollectorRegistry()))
    yield made
    made.close()


def encoded(pairs: list[tuple[bytes, bytes]]) -> str:
    return "&".join(f"{quote_from_bytes(name)}={quote_from_bytes(value)}" for name, value in pairs)


plausible = st.tuples(NAMES.map(str.encode), VALUES.map(str.encode))


@given(st.lists(plausible | st.tuples(NAMES.map(str.encode), ANY) | st.tuples(ANY, ANY), max_size=6))
@example([(b"capacity_gb", b"1"), (b"from", b"0"), (b"to", b"2")])
def test_no_query_string_makes_it_fail(client: Client, pairs: list[tuple[bytes, bytes]]) -> None:
    response = client.request("GET", f"/query?{encoded(pairs)}")
    if response.status_code == 200:
        answer = QueryAnswer.model_validate_json(response.content)
        assert answer.total.requests == sum(one.requests for one in answer.instances)
    else:
        problem = Problem.model_validate_json(response.content)
        assert problem.status == response.status_code
        assert problem.status in {404, 422}
        assert problem.errors
