"""The JSON Schemas of every record, file and answer, generated from the models."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from schemas import answers
from schemas.dead_letter import DeadLetterHeaders
from schemas.fact import RequestFact
from schemas.registry import RegistryFile
from schemas.request import EVENT

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_READ: JsonSchemaMode = "validation"
_WRITTEN: JsonSchemaMode = "serialization"


def json_schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema. What LiteHit reads is described as it is accepted, what it writes as it is written."""
    return {
        "request-event.schema.json": _schema(EVENT, _READ),
        "registry.schema.json": _schema(RegistryFile, _READ),
        "fact.schema.json": _schema(RequestFact, _WRITTEN),
        "dead-letter-headers.schema.json": _schema(DeadLetterHeaders, _WRITTEN),
        "query-answer.schema.json": _schema(answers.QueryAnswer, _WRITTEN),
        "curve-answer.schema.json": _schema(answers.CurveAnswer, _WRITTEN),
        "capacity-answer.schema.json": _schema(answers.CapacityAnswer, _WRITTEN),
        "instances-answer.schema.json": _schema(answers.InstancesAnswer, _WRITTEN),
        "problem.schema.json": _schema(answers.Problem, _WRITTEN),
        "readiness.schema.json": _schema(answers.Readiness, _WRITTEN),
        "health.schema.json": _schema(answers.Health, _WRITTEN),
    }


def _schema(model: type[BaseModel] | TypeAdapter[Any], mode: JsonSchemaMode) -> dict[str, Any]:
    schema = model.json_schema(mode=mode) if isinstance(model, TypeAdapter) else model.model_json_schema(mode=mode)
    return {"$schema": _DIALECT} | schema
