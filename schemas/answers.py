"""The answers of the HTTP API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, le=1)]

TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}Z$"
Time = Annotated[str, Field(pattern=TIME_PATTERN, examples=["2025-01-31T09:30:00.123456789Z"])]
"""RFC 3339 in UTC with nine digits of a second."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)


class Ceiling(_Answer):
    """What an infinite cache would have hit: only blocks never seen before (or expired) miss."""

    hit_blocks: Count = Field(description="blocks hit at infinite capacity", examples=[105592])
    hit_tokens: Count = Field(description="tokens of those blocks", examples=[54063104])
    hit_rate: Rate = Field(
        description="hit_tokens / total_input_tokens; 0 where there are no tokens", examples=[0.373379905854133]
    )


class Summary(_Answer):
    """Sums over a set of requests; the lists are by capacity, in the order asked, duplicates included."""

    requests: Count = Field(description="requests counted", examples=[12031])
    total_input_tokens: Count = Field(description="sum of their prompt lengths", examples=[144793823])
    capacity_gb: list[float] = Field(
        description="capacities as asked, in binary GB (1024**3 bytes) for each instance; negative is infinite",
        examples=[[8.0, -1.0]],
    )
    total_hit_blocks: list[Count] = Field(description="blocks hit at each capacity", examples=[[53887, 105592]])
    total_hit_tokens: list[Count] = Field(description="tokens hit at each capacity", examples=[[27590144, 54063104]])
    hit_rates: list[Rate] = Field(
        description="total_hit_tokens / total_input_tokens (sum over sum); 0 where there are no tokens",
        examples=[[0.19054779705623215, 0.373379905854133]],
    )
    ceiling: Ceiling


class InstanceSummary(Summary):
    """Sums over the requests of one instance."""

    instance_id: str = Field(description="the model deployment", examples=["qwen3-chat"])


class WindowAnswer(_Answer):
    """The window that was summed: from <= time of the request < to; null where open."""

    from_: Time | None = Field(alias="from", description="first instant inside")
    to: Time | None = Field(description="first instant past the end")
    from_ns: int | None = Field(description="`from` in nanoseconds since the epoch", examples=[1738315800123456789])
    to_ns: int | None = Field(description="`to` in nanoseconds since the epoch", examples=[1738402200000000000])


class AsOf(_Answer):
    """Which facts of one partition the answer counts: all before `next_offset`, and none after."""

    topic: str = Field(description="the facts topic", examples=["litehit.facts"])
    generation: str = Field(
        description="generation of the facts topic: a topic that was deleted and created again has a new one",
        examples=["p2dJv6UGQSy5S1n0pZ0kNg"],
    )
    partition: Count = Field(description="partition of the facts topic", examples=[0])
    next_offset: Count = Field(description="offset of the first fact that is not counted", examples=[12031])
    time: Time | None = Field(description="time of the newest request counted; null without any")
    time_ns: int | None = Field(description="`time` in nanoseconds since the epoch", examples=[1738315800123456789])
    lag: Count | None = Field(
        description="facts that stand in the topic and are not counted yet; null where this process does not read the "
        "topic (the API follows the store) and for earlier generations",
        examples=[0],
    )


class QueryAnswer(_Answer):
    """Exact hits at each capacity asked, for each instance and in total."""

    total: Summary
    instances: list[InstanceSummary] = Field(
        description="by instance_id: those asked for, or else those with a request in the window"
    )
    window: WindowAnswer
    as_of: list[AsOf] = Field(description="by generation and partition: exactly which facts were summed")


class ParameterProblem(_Answer):
    """One parameter that could not be used."""

    parameter: str = Field(description="its name", examples=["capacity_gb"])
    value: str | None = Field(description="what was sent; null where it is missing", examples=["nan"])
    detail: str = Field(description="what is wrong and what to send instead")


class Problem(_Answer):
    """An error as RFC 9457 problem JSON (application/problem+json)."""

    type: str = Field(
        description="a stable name of the kind of problem, to be matched by programs",
        examples=["urn:litehit:problem:invalid-parameter"],
    )
    title: str = Field(description="the kind of problem for a person", examples=["A parameter can't be used"])
    status: Annotated[int, Field(ge=400, le=599)] = Field(description="the HTTP status", examples=[422])
    detail: str = Field(
        description="what happened here, and what to do",
        examples=["capacity_gb 'nan' is not a finite number; send a number of GB, or -1 for infinite"],
    )
    instance: str = Field(description="the path and query that were asked", examples=["/query?capacity_gb=nan"])
    errors: list[ParameterProblem] = Field(default=[], description="each parameter at fault")


class Waiting(_Answer):
    """One thing that keeps the service from being ready."""

    component: str = Field(description="the role that waits", examples=["lanes"])
    detail: str = Field(
        description="what it waits for, or the error that stopped it and what to do",
        examples=["partition 2 restores its state: offset 51000 of 120000"],
    )


class Readiness(_Answer):
    """Whether answers can be relied on now, and if not, what is waited for."""

    ready: bool = Field(examples=[False])
    waiting: list[Waiting] = Field(description="empty when ready")


class Health(_Answer):
    """The process lives and serves HTTP."""

    status: str = Field(examples=["ok"])
    version: str = Field(description="version of the service", examples=["0.1.0"])
