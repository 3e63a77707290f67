"""How the parameters of a call are read: by its one model, straight from the query."""

from __future__ import annotations

from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import Receive, Scope, Send

from service.api.problems import invalid_parameters, parameter_problem


class FactsRoute(APIRoute):
    """A call `(request, parameters)`, whose `parameters` are declared as a query model and documented as such.

    FastAPI's own handling takes longer than `/query` takes to answer: at each call it looks at the types of all fields,
    and opens and closes what dependencies may need, of which there are none. Errors are the same.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the call; one of another method is refused as FastAPI does."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        answer = await self._answer(request, self._parameters.read(scope["query_string"].decode("latin-1")))
        await answer(scope, receive, send)

    async def _answer(self, request: Request, parameters: BaseModel) -> Response:
        if self._is_async:
            answer: Response = await self.endpoint(request, parameters)
            return answer
        return await run_in_threadpool(self.endpoint, request, parameters)

    @cached_property
    def _is_async(self) -> bool:
        return iscoroutinefunction(self.endpoint)

    @cached_property
    def _parameters(self) -> _Parameters:
        return _Parameters(get_type_hints(self.endpoint)["parameters"])


class _Parameters:
    """Reads queries as a model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        self._lists = {name for name, field in fields.items() if _is_list(field.annotation)}
        self._single = fields.keys() - self._lists

    def read(self, query: str) -> BaseModel:
        """The parameters of a query.

        Raises:
            ApiProblem: one that takes a single value has several.
            RequestValidationError: they are none of the model.
        """
        given: dict[str, list[str]] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            given.setdefault(name, []).append(value)
        _refuse_repeats({name: values for name, values in given.items() if name in self._single})
        values = {
            name: values if name in self._lists or len(values) > 1 else values[0] for name, values in given.items()
        }
        try:
            return self._model.model_validate(values)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in errors]) from None


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list


def _refuse_repeats(given: dict[str, list[str]]) -> None:
    """Refuse a second value of a parameter that takes one, of which a reader of the call could expect either.

    Raises:
        ApiProblem: names the parameters.
    """
    problems = [
        parameter_problem(name, ", ".join(values), f"is given {len(values)} times; send it once")
        for name, values in given.items()
        if len(values) > 1
    ]
    if problems:
        raise invalid_parameters(problems)
