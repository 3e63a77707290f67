"""How the parameters of a call are read: by its one model, straight from the query."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any, get_origin, get_type_hints

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from service.api.problems import invalid_parameters, parameter_problem


class FactsRoute(APIRoute):
    """A call `(request, parameters)`, whose `parameters` are declared as a query model and documented as such.

    FastAPI's own reading of a model takes longer than `/query` takes to answer: it looks at the types of all fields at
    each call. Here that is done once. Errors are the same.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers the call."""
        call: Callable[..., Any] = self.endpoint
        model: type[BaseModel] = get_type_hints(call)["parameters"]
        lists = {field.alias or name for name, field in model.model_fields.items() if _is_list(field.annotation)}
        known = {field.alias or name for name, field in model.model_fields.items()}
        is_async = iscoroutinefunction(call)

        async def handle(request: Request) -> Response:
            given: dict[str, list[str]] = {}
            for name, value in request.query_params.multi_items():
                given.setdefault(name, []).append(value)
            _refuse_repeats({name: values for name, values in given.items() if name in known and name not in lists})
            values = {name: values if name in lists or len(values) > 1 else values[0] for name, values in given.items()}
            try:
                parameters = model.model_validate(values)
            except ValidationError as error:
                errors = error.errors(include_url=False)
                raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in errors]) from None
            if is_async:
                answer: Response = await call(request, parameters)
                return answer
            return await run_in_threadpool(call, request, parameters)

        return handle


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
