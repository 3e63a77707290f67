"""Errors of the API as RFC 9457 problem documents: each names the parameter, the value and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from schemas.answers import ParameterProblem, Problem

PROBLEM_MEDIA_TYPE = "application/problem+json"
UNUSABLE = "unusable"
"""Type of a pydantic error whose message follows the parameter's name and value and says what to send."""

_TYPE_PREFIX = "urn:litehit:problem:"
_SHOWN = 100  # characters of a value that are echoed
_log = structlog.get_logger()


class ApiProblem(Exception):
    """Ends a call with a problem document.

    Attributes:
        status: the HTTP status.
        code: end of the problem's type, stable.
        title: the kind of problem.
        detail: what happened here, and what to do.
        errors: the parameters at fault.
        retry_after: seconds after which to try again, where that helps.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        title: str,
        detail: str,
        errors: Sequence[ParameterProblem] = (),
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.errors = errors
        self.retry_after = retry_after
        super().__init__(detail)


def parameter_problem(parameter: str, value: object, reason: str) -> ParameterProblem:
    """What is wrong with one parameter; `reason` follows its name and value in a sentence."""
    if value is None:
        return ParameterProblem(parameter=parameter, value=None, detail=f"{parameter} {reason}")
    shown = _shorten(str(value))
    return ParameterProblem(parameter=parameter, value=shown, detail=f"{parameter} {shown!r} {reason}")


def invalid_parameters(errors: Sequence[ParameterProblem]) -> ApiProblem:
    """422: parameters that can't be used."""
    return ApiProblem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid-parameter",
        "A parameter can't be used",
        ". ".join(error.detail for error in errors),
        errors,
    )


def install_problem_handlers(app: FastAPI) -> None:
    """Let every error of the app, its own, FastAPI's and unforeseen ones, end in a problem document."""

    @app.exception_handler(ApiProblem)
    def _on_problem(request: Request, error: ApiProblem) -> Response:
        return respond(request, error)

    @app.exception_handler(RequestValidationError)
    def _on_validation(request: Request, error: RequestValidationError) -> Response:
        known = _parameters_of(request)
        return respond(request, invalid_parameters([_from_pydantic(one, known) for one in error.errors()]))

    @app.exception_handler(HTTPException)
    def _on_http(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        headers = dict(error.headers or {})
        if "Allow" in headers:
            headers["Allow"] = headers["Allow"].replace("GET", "GET, HEAD")  # see HeadCalls
        details = {
            HTTPStatus.NOT_FOUND: f"{request.url.path} is no call of this service; /docs lists them",
            HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not take {request.method}; "
            f"use {headers.get('Allow', 'GET')}",
        }
        code = status.phrase.lower().replace(" ", "-")
        problem = ApiProblem(status, code, status.phrase, details.get(status, str(error.detail)))
        return respond(request, problem, headers)

    @app.exception_handler(Exception)
    def _on_bug(request: Request, error: Exception) -> Response:
        _log.error("http_request_failed", path=request.url.path, query=request.url.query, exc_info=error)
        return respond(
            request,
            ApiProblem(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "internal-error",
                "The service failed",
                "the service failed on this call, which is a defect of it; its log has the details. "
                "Please report them with the call",
            ),
        )


def respond(request: Request, problem: ApiProblem, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as an answer to a call."""
    asked = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    document = Problem(
        type=f"{_TYPE_PREFIX}{problem.code}",
        title=problem.title,
        status=problem.status,
        detail=problem.detail,
        instance=_shorten(asked, 1000),
        errors=list(problem.errors),
    )
    sent = {"Link": '</docs>; rel="help"', **(headers or {})}
    if problem.retry_after is not None:
        sent["Retry-After"] = str(problem.retry_after)
    return Response(document.model_dump_json(), problem.status, sent, PROBLEM_MEDIA_TYPE)


def _parameters_of(request: Request) -> Mapping[str, str]:
    """Name and description of the query parameters of the call, as its documentation has them."""
    operation = request.app.openapi()["paths"].get(request.url.path, {}).get(request.method.lower(), {})
    return {one["name"]: one.get("description", "") for one in operation.get("parameters", ())}


def _from_pydantic(error: Mapping[str, Any], known: Mapping[str, str]) -> ParameterProblem:
    # The location is ("query", name) and, in a list, the element's index.
    name = str(error["loc"][1])
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        return parameter_problem(
            name, error["input"], f"is no parameter of this call; {meant}it takes {', '.join(sorted(known))}"
        )
    if error["type"] == UNUSABLE:
        return parameter_problem(name, error["input"], error["msg"])
    send = f"; send {known[name]}" if known.get(name) else ""
    if error["type"] == "missing":
        return parameter_problem(name, None, f"is missing{send}")
    reason = error["msg"]
    return parameter_problem(name, error["input"], f"can't be used ({reason[:1].lower()}{reason[1:]}){send}")


def _shorten(text: str, limit: int = _SHOWN) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
