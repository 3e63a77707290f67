"""The OpenAPI document: every error is described as the problem document it is."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas.answers import Problem
from schemas.examples import example_of
from service.api.problems import PROBLEM_MEDIA_TYPE

Responses: TypeAlias = dict[int | str, dict[str, Any]]

_REFERENCE = "#/components/schemas/{model}"


def problem_responses(*statuses: HTTPStatus) -> Responses:
    """FastAPI's `responses` of a call that may end in these statuses."""
    content = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model=Problem.__name__)}}}
    return {int(status): {"description": status.phrase, "content": content} for status in statuses}


VALIDATORS: dict[str, Any] = {
    "ETag": {
        "description": "sent back as If-None-Match, the same question about the same facts is answered 304",
        "schema": {"type": "string"},
    }
}
"""Headers of every answer from facts."""

OTHER_RESPONSES: Responses = {
    int(HTTPStatus.NOT_MODIFIED): {"description": "The reader has this answer already (If-None-Match)"},
    **problem_responses(
        HTTPStatus.NOT_FOUND,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    ),
}
"""Of every call that is answered from facts."""


def example_response(model: type[BaseModel]) -> Responses:
    """A whole answer as an example."""
    return {int(HTTPStatus.OK): {"content": {"application/json": {"example": example_of(model)}}}}


def answer_responses(model: type[BaseModel]) -> Responses:
    """FastAPI's `responses` of a call that is answered from facts with a model."""
    responses = {**example_response(model), **OTHER_RESPONSES}
    responses[int(HTTPStatus.OK)]["headers"] = VALIDATORS
    return responses


def install_openapi(app: FastAPI) -> None:
    """Add the problem document, which FastAPI knows only in media type application/json, to the app's schemas."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                license_info=app.license_info,
            )
            _, problem = models_json_schema([(Problem, "serialization")], ref_template=_REFERENCE)
            document.setdefault("components", {}).setdefault("schemas", {}).update(problem["$defs"])
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
