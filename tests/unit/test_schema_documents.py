"""The published schemas say what the models accept, and the AsyncAPI document refers only to what exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from schemas.asyncapi import asyncapi_document
from schemas.documents import json_schemas
from schemas.fact import RequestFact
from schemas.registration import RegisterEvent
from schemas.request import EVENT, RequestEvent

SCHEMAS = json_schemas()
ASYNCAPI = asyncapi_document(("the.requests", "the.facts", "the.dead-letters"))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)


def _resolve(document: dict[str, Any], pointer: str) -> Any:
    node: Any = document
    for part in pointer.removeprefix("#/").split("/"):
        node = node[part]
    return node


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_schema_names_its_dialect_and_resolves(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for reference in _references(schema):
        assert isinstance(_resolve(schema, reference), dict)


def test_a_tair_line_fits_the_schema_as_it_fits_the_model() -> None:
    line = {"type": "get", "instance_id": "a", "keys": [1], "input_len": 20}
    schema = SCHEMAS["request-event.schema.json"]["$defs"]["RequestEvent"]
    assert line.keys() <= schema["properties"].keys()
    assert set(schema["required"]) <= line.keys()
    assert any(set(choice["required"]) <= line.keys() for choice in schema["anyOf"])
    assert not any(set(choice["required"]) <= {"type", "input_len"} for choice in schema["anyOf"])
    event = EVENT.validate_python(line)
    assert isinstance(event, RequestEvent)
    assert event.block_keys.tolist() == [1]


def test_a_fact_has_the_columns_in_their_order() -> None:
    assert list(SCHEMAS["fact.schema.json"]["properties"]) == list(RequestFact.model_fields)
    assert SCHEMAS["fact.schema.json"]["required"] == list(RequestFact.model_fields)


def test_asyncapi_refers_to_what_exists() -> None:
    references = set(_references(ASYNCAPI))
    files = {reference.removeprefix("./") for reference in references if reference.startswith("./")}
    assert files == {"request-event.schema.json", "fact.schema.json", "dead-letter-headers.schema.json"}
    assert files <= SCHEMAS.keys()
    for reference in references:
        if reference.startswith("#/"):
            assert isinstance(_resolve(ASYNCAPI, reference), dict)


def test_asyncapi_names_the_topics_that_are_set() -> None:
    addresses = [channel["address"] for channel in ASYNCAPI["channels"].values()]
    assert addresses == ["the.requests", "the.facts", "the.dead-letters"]
    assert [channel["bindings"]["kafka"]["topic"] for channel in ASYNCAPI["channels"].values()] == addresses
    used = {
        _resolve(ASYNCAPI, operation["channel"]["$ref"])["address"] for operation in ASYNCAPI["operations"].values()
    }
    assert used == set(addresses)


def test_a_registration_is_an_event_of_the_requests_topic() -> None:
    definitions = SCHEMAS["request-event.schema.json"]["$defs"]
    assert set(definitions["RegisterEvent"]["properties"]) == {*RegisterEvent.model_fields}
    event = EVENT.validate_python({"type": "register", "block_bytes": 5})
    assert isinstance(event, RegisterEvent)
