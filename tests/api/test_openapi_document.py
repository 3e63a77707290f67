"""The OpenAPI document is valid, complete, and its examples are real answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from pydantic import BaseModel, TypeAdapter

from schemas import answers
from schemas.fact import RequestFact
from tests.api_archive import ApiArchive
from tests.api_doubles import Client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Of an app with every call."""
    made = Client(ApiArchive(tmp_path).app)
    yield made
    made.close()


@pytest.fixture
def document(client: Client) -> dict[str, Any]:
    response = client.get("/openapi.json")
    assert response.status_code == 200
    content: dict[str, Any] = response.json()
    return content


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def test_it_is_an_openapi_document(document: dict[str, Any]) -> None:
    OpenAPI.model_validate(document)
    assert document["openapi"].startswith("3.1")
    assert {"/query", "/curve", "/capacity", "/healthz", "/readyz", "/metrics"} <= document["paths"].keys()


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = [node["$ref"] for node in walk(document) if "$ref" in node]
    assert "#/components/schemas/Problem" in references
    for reference in references:
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


CALLS = {
    "/query": ["instance_id", "from", "to", "block_bytes", "capacity_gb"],
    "/query/requests": ["instance_id", "from", "to", "block_bytes", "capacity_gb"],
    "/curve": ["instance_id", "from", "to", "block_bytes", "points"],
    "/capacity": ["instance_id", "from", "to", "block_bytes", "hit_rate", "of_ceiling"],
    "/instances": ["instance_id", "from", "to", "block_bytes"],
    "/facts": ["instance_id", "from", "to", "limit", "cursor"],
}
MODELS = [
    one
    for one in vars(answers).values()
    if isinstance(one, type) and issubclass(one, BaseModel) and one is not BaseModel
]


def test_every_parameter_is_described(document: dict[str, Any]) -> None:
    for path, names in CALLS.items():
        parameters = document["paths"][path]["get"]["parameters"]
        assert [one["name"] for one in parameters] == names
        assert all(one["description"] for one in parameters)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_is_described(model: type[BaseModel]) -> None:
    for field, info in model.model_fields.items():
        assert info.description, field


def test_errors_are_problem_documents(document: dict[str, Any]) -> None:
    for path in CALLS:
        responses = document["paths"][path]["get"]["responses"]
        assert responses.keys() == {"200", "304", "404", "422", "429", "503"}
        assert "content" not in responses["304"]
        for status in responses.keys() - {"200", "304"}:
            assert list(responses[status]["content"]) == ["application/problem+json"]


def test_examples_pass_their_own_schema() -> None:
    for model in MODELS:
        for field, info in model.model_fields.items():
            annotation: Any = info.annotation
            adapter = TypeAdapter[Any](annotation)
            for example in info.examples or ():
                assert adapter.validate_python(example, strict=True) == example, f"{model.__name__}.{field}"


def test_every_call_shows_a_whole_answer(document: dict[str, Any]) -> None:
    models: dict[str, type[BaseModel]] = {
        "/query": answers.QueryAnswer,
        "/curve": answers.CurveAnswer,
        "/capacity": answers.CapacityAnswer,
        "/instances": answers.InstancesAnswer,
        "/healthz": answers.Health,
        "/readyz": answers.Readiness,
    }
    for path, model in models.items():
        example = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"]
        # FastAPI leaves out what is null.
        assert model.model_validate(example).model_dump(mode="json", exclude_none=True) == example
    for path, lines in (("/facts", 1), ("/query/requests", 1)):
        example = document["paths"][path]["get"]["responses"]["200"]["content"]["application/x-ndjson"]["example"]
        assert len([json.loads(line) for line in example.splitlines()]) == lines
    RequestFact.model_validate_json(
        document["paths"]["/facts"]["get"]["responses"]["200"]["content"]["application/x-ndjson"]["example"]
    )


def test_the_documentation_page_and_the_way_to_it(client: Client) -> None:
    assert 'href="docs"' in client.get("/").text
    assert "openapi.json" in client.get("/docs").text


def test_the_page_of_documentation_needs_no_other_host(client: Client) -> None:
    page = client.get("/docs").text
    links = re.findall(r"(?:src|href)=\"([^\"]+)\"", page)
    assert links
    for link in links:
        assert link.startswith("/docs/files/")
        assert client.get(link).status_code == 200
    assert "https://" not in page


def test_a_problem_leads_to_the_documentation(client: Client) -> None:
    for path in ("/query", "/nothing"):
        assert client.get(path).headers["link"] == '</docs>; rel="help"'
