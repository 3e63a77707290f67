"""Every call keeps what the OpenAPI document promises, whatever it is sent: schemathesis's checks, no 5xx."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from schemathesis.specs.openapi.schemas import OpenApiSchema

from service.archive.segment import ChainKey
from tests.api_archive import ApiArchive
from tests.archive_facts import made_fact
from tests.histories import fact

CHAIN = ChainKey("litehit.facts", "g", 0)
ASKING = ("/query", "/query/requests", "/curve", "/capacity", "/instances", "/facts")
PLAIN = ("/healthz", "/readyz", "/metrics")  # they take nothing that could be wrong
BEYOND_A_SCHEMA = (
    "is not before to",
    "is no time of the calendar",
    "lies outside 64-bit nanoseconds",
    "looks like",
    "is no cursor",
    "hit_rate is missing, and so is of_ceiling",
)
"""What no schema of single parameters can say: a value that is of its schema may be refused so."""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> OpenApiSchema:
    """Of an app over some facts, in a segment and in a tail."""
    archive = ApiArchive(tmp_path_factory.mktemp("conformance"))
    archive.append(CHAIN, [made_fact(offset) for offset in range(30)])
    archive.publish(CHAIN)
    archive.append(CHAIN, [fact(1_738_315_800 * 10**9, (1, 4), (9, 2))])
    return schemathesis.openapi.from_asgi("/openapi.json", archive.app)


def test_no_call_is_left_out(schema: OpenApiSchema) -> None:
    assert sorted(schema) == sorted((*ASKING, *PLAIN))


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        *((path, schemathesis.GenerationMode.POSITIVE) for path in (*ASKING, *PLAIN)),
        *((path, schemathesis.GenerationMode.NEGATIVE) for path in ASKING),
    ],
)
def test_every_call(schema: OpenApiSchema, path: str, mode: schemathesis.GenerationMode) -> None:
    cases = schema[path]["GET"].as_strategy(generation_mode=mode)

    @settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def check(case: Any) -> None:
        response = case.call()
        beyond = response.status_code == 422 and all(
            any(phrase in error["detail"] for phrase in BEYOND_A_SCHEMA) for error in response.json()["errors"]
        )
        case.validate_response(response, excluded_checks=[positive_data_acceptance] if beyond else [])

    check()
