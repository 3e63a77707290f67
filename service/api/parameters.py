"""The query parameters of the calls."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from service.api.problems import UNUSABLE, invalid_parameters, parameter_problem
from service.api.windows import TimeWindow, parse_time

MAX_VALUES = 1000


def _nanoseconds(value: Any) -> int:
    try:
        return parse_time(value)
    except ValueError as error:
        raise PydanticCustomError(UNUSABLE, "{reason}", {"reason": str(error)}) from None


_Instant = Annotated[
    int,
    BeforeValidator(_nanoseconds),
    WithJsonSchema({"type": "string", "examples": ["2025-01-31T09:30:00Z", "1738315800123456789"]}),
]
_CapacityGb = Annotated[float, Field(allow_inf_nan=False)]
_InstanceId = Annotated[str, Field(min_length=1)]


class QueryParameters(BaseModel):
    """What `/query` is asked; a name that is not here is refused, so that a typo never gives a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    capacity_gb: list[_CapacityGb] = Field(
        min_length=1,
        max_length=MAX_VALUES,
        description="a finite number of binary GB (1024**3 bytes), negative for infinite; repeat it for up to 1,000 "
        "capacities, answered in the order given",
        examples=[[8, 64, -1]],
    )
    instance_id: list[_InstanceId] = Field(
        default=[],
        max_length=MAX_VALUES,
        description="an instance to sum; repeat it for several, leave it out for all. An id that no fact has is 404; "
        "one without facts in the window is summed to 0",
        examples=[["qwen3-chat"]],
    )
    from_: _Instant | None = Field(
        default=None,
        alias="from",
        description="first instant of the window: RFC 3339 with its offset and up to nine digits of a second, or "
        "integer nanoseconds since the epoch; leave it out for an open start",
    )
    to: _Instant | None = Field(
        default=None, description="first instant past the window, written as `from`; leave it out for an open end"
    )
    block_bytes: Annotated[int, Field(ge=1, lt=2**63)] | None = Field(
        default=None,
        description="bytes to charge every block instead of what each fact carries (what if?), an integer from 1",
        examples=[1048576],
    )

    @property
    def window(self) -> TimeWindow:
        """The window asked for.

        Raises:
            ApiProblem: it is empty.
        """
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            reason = f"is not before to {self.to}; a window is half open, so send a `from` that is earlier than `to`"
            raise invalid_parameters([parameter_problem("from", self.from_, reason)])
        return TimeWindow(self.from_, self.to)


def refuse_repeats(request: Request) -> None:
    """Refuse a second value of a parameter that takes one, of which a reader of the call could expect either.

    Raises:
        ApiProblem: names the parameters.
    """
    problems = []
    for name in ("from", "to", "block_bytes"):
        values = request.query_params.getlist(name)
        if len(values) > 1:
            problems.append(parameter_problem(name, ", ".join(values), f"is given {len(values)} times; send it once"))
    if problems:
        raise invalid_parameters(problems)
