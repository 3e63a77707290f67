"""The OpenAPI document is valid, complete, and its examples are real answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from pydantic import TypeAdapter

from schemas import answers
from tests.api_doubles import Client


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


def test_every_parameter_and_field_is_described(document: dict[str, Any]) -> None:
    query = document["paths"]["/query"]["get"]
    assert [one["name"] for one in query["parameters"]] == ["instance_id", "from", "to", "block_bytes", "capacity_gb"]
    assert all(one["description"] for one in query["parameters"])
    for name in ("Summary", "AsOf", "Ceiling", "Problem", "ParameterProblem", "WindowAnswer"):
        model = getattr(answers, name)
        for field, info in model.model_fields.items():
            assert info.description or info.annotation is answers.Ceiling, f"{name}.{field}"


def test_errors_are_problem_documents(document: dict[str, Any]) -> None:
    responses = document["paths"]["/query"]["get"]["responses"]
    assert responses.keys() == {"200", "404", "422", "429", "503"}
    for status, response in responses.items():
        media = "application/json" if status == "200" else "application/problem+json"
        assert list(response["content"]) == [media]


def test_examples_pass_their_own_schema() -> None:
    for name in ("Summary", "InstanceSummary", "AsOf", "Ceiling", "Problem", "ParameterProblem", "Waiting"):
        for field, info in getattr(answers, name).model_fields.items():
            adapter = TypeAdapter[Any](info.annotation)
            for example in info.examples or ():
                assert adapter.validate_python(example, strict=True) == example, f"{name}.{field}"


def test_the_documentation_page_and_the_way_to_it(client: Client) -> None:
    assert 'href="docs"' in client.get("/").text
    assert "openapi.json" in client.get("/docs").text
