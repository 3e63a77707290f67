"""The query parameters of the calls."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from service.api.cursor import decode_cursor
from service.api.instants import check_unit
from service.api.limits import MAX_LINES, MAX_POINTS, MAX_TARGETS, MAX_VALUES, MIN_POINTS
from service.api.problems import UNUSABLE, invalid_parameters, parameter_problem
from service.api.windows import TimeWindow, parse_time
from service.archive.segment import ChainKey

RFC_3339_PATTERN = r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})"


def _nanoseconds(value: Any) -> int:
    try:
        return parse_time(value)
    except ValueError as error:
        raise PydanticCustomError(UNUSABLE, "{reason}", {"reason": str(error)}) from None


_Instant = Annotated[
    int,
    BeforeValidator(_nanoseconds),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^(-?\d+|{RFC_3339_PATTERN})$",
            "examples": ["2025-01-31T09:30:00Z", "1738315800123456789"],
        }
    ),
]
_CapacityGb = Annotated[float, Field(allow_inf_nan=False)]
_InstanceId = Annotated[str, Field(min_length=1)]
# Decimals as they were sent: .1 is a tenth, which no binary fraction is. Bounded, for they become whole fractions.
_Share = Annotated[
    Decimal,
    Field(ge=0, le=1, max_digits=401, decimal_places=400),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]

_CAPACITIES = Field(
    min_length=1,
    max_length=MAX_VALUES,
    description="a finite number of binary GB (1024**3 bytes), negative for infinite; repeat it for up to 1,000 "
    "capacities, answered in the order given",
    examples=[[8, 64, -1]],
)


class FactsSelected(BaseModel):
    """Which facts a call is about; a name that is not here is refused, so that a typo never gives a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    instance_id: list[_InstanceId] = Field(
        default=[],
        max_length=MAX_VALUES,
        description="an instance; repeat it for several, leave it out for all. An id that no fact has is 404; one "
        "without facts in the window counts 0",
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


class Selected(FactsSelected):
    """Which facts a call is about, and what a block is charged."""

    block_bytes: Annotated[int, Field(ge=1, lt=2**63)] | None = Field(
        default=None,
        description="bytes to charge every block instead of what each fact carries (what if?), an integer from 1",
        examples=[1048576],
    )


class QueryParameters(Selected):
    """What `/query` and `/query/requests` are asked."""

    capacity_gb: list[_CapacityGb] = _CAPACITIES


class CurveParameters(Selected):
    """What `/curve` is asked."""

    points: Annotated[int, Field(ge=MIN_POINTS, le=MAX_POINTS)] | None = Field(
        default=None,
        description=f"points of a curve at most, {MIN_POINTS} to {MAX_POINTS:,}; leave it out for every breakpoint",
        examples=[200],
    )


class CapacityParameters(Selected):
    """What `/capacity` is asked."""

    hit_rate: list[_Share] = Field(
        default=[],
        max_length=MAX_TARGETS,
        description=f"a hit rate to reach, a decimal from 0 to 1; repeat it for up to {MAX_TARGETS}",
        examples=[[0.3]],
    )
    of_ceiling: list[_Share] = Field(
        default=[],
        max_length=MAX_TARGETS,
        description="a share of the ceiling to reach, a decimal from 0 to 1 (.95: 95 % of what an infinite cache "
        f"hits); repeat it for up to {MAX_TARGETS}",
        examples=[[0.9, 0.95, 0.99]],
    )


def _offsets(value: Any) -> dict[ChainKey, int]:
    try:
        return decode_cursor(value)
    except ValueError as error:
        raise PydanticCustomError(UNUSABLE, "{reason}", {"reason": str(error)}) from None


_Offsets = Annotated[
    dict[ChainKey, int], BeforeValidator(_offsets), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"})
]


class FactsParameters(FactsSelected):
    """What `/facts` is asked."""

    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = Field(
        default=1000, description=f"facts of a page at most, 1 to {MAX_LINES:,}", examples=[1000]
    )
    cursor: _Offsets | None = Field(
        default=None,
        description="where to go on: what an answer gave in LiteHit-Cursor; leave it out to begin at the first fact",
    )


def refuse_other_units(request: Request, window: TimeWindow, earliest_ns: Callable[[], int | None]) -> None:
    """Refuse ends of a window that select nothing because they are in seconds or milliseconds.

    Args:
        request: the call.
        window: the window it asks for.
        earliest_ns: says the time of the earliest fact; None where there is none.

    Raises:
        ApiProblem: names the parameters.
    """
    if window == TimeWindow() or (earliest := earliest_ns()) is None:
        return
    problems = []
    for name in ("from", "to"):
        text = request.query_params.get(name)
        if text is None:
            continue
        try:
            check_unit(text, earliest)
        except ValueError as error:
            problems.append(parameter_problem(name, text, str(error)))
    if problems:
        raise invalid_parameters(problems)
