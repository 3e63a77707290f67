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


class Gain(_Answer):
    """What one more GB adds: hits at each capacity plus 1 GB, less hits at the capacity; 0 at infinite capacity."""

    hit_blocks: list[Count] = Field(description="blocks gained at each capacity", examples=[[5114, 0]])
    hit_tokens: list[Count] = Field(description="tokens gained at each capacity", examples=[[2618368, 0]])
    hit_rates: list[Rate] = Field(
        description="hit rate gained at each capacity: tokens gained / total_input_tokens",
        examples=[[0.01808342390667535, 0.0]],
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
    of_ceiling: list[Rate] = Field(
        description="total_hit_tokens / hit tokens at infinite capacity: the share of what any cache could hit; 1 "
        "where that is nothing",
        examples=[[0.5103322979013561, 1.0]],
    )
    gain_per_gb: Gain = Field(description="what the next GB of each capacity adds")
    ceiling: Ceiling = Field(description="hits at infinite capacity")


class InstanceSummary(Summary):
    """Sums over the requests of one instance."""

    instance_id: str = Field(description="the model deployment", examples=["qwen3-chat"])


class WindowAnswer(_Answer):
    """The window that was summed: from <= time of the request < to; null where open."""

    from_: Time | None = Field(alias="from", description="first instant inside")
    to: Time | None = Field(description="first instant past the end")
    from_ns: int | None = Field(description="`from` in nanoseconds since the epoch", examples=[1738315800123456789])
    to_ns: int | None = Field(description="`to` in nanoseconds since the epoch", examples=[1738402200000000000])


class MissingFacts(_Answer):
    """Offsets whose facts no segment holds, though later ones do.

    A file was lost or can't be read, or the facts had expired before they were archived.
    """

    from_offset: Count = Field(description="the first of them", examples=[51000])
    to_offset: Count = Field(description="the first past them", examples=[52000])


class AsOf(_Answer):
    """Which facts of one partition the answer counts: from `start_offset` to before `next_offset`, but the missing."""

    topic: str = Field(description="the facts topic", examples=["litehit.facts"])
    generation: str = Field(
        description="generation of the facts topic: a topic that was deleted and created again has a new one",
        examples=["p2dJv6UGQSy5S1n0pZ0kNg"],
    )
    partition: Count = Field(description="partition of the facts topic", examples=[0])
    start_offset: Count = Field(
        description="offset from which on facts are counted: those before were removed by retention", examples=[0]
    )
    next_offset: Count = Field(description="offset of the first fact that is not counted", examples=[12031])
    missing: list[MissingFacts] = Field(
        description="what is not counted between them; empty where nothing is missing", examples=[[]]
    )
    unreadable: list[str] = Field(
        description="files behind `next_offset` that can't be read, and why: what they hold is not counted, and how "
        "much that is is unknown; empty where every file is read",
        examples=[[]],
    )
    time: Time | None = Field(description="time of the newest request counted; null without any")
    time_ns: int | None = Field(description="`time` in nanoseconds since the epoch", examples=[1738315800123456789])
    lag: Count | None = Field(
        description="facts that stand in the topic and are not counted yet; null where this process does not read the "
        "topic (the API follows the store) and for earlier generations",
        examples=[0],
    )


class _AboutFacts(_Answer):
    window: WindowAnswer = Field(description="the window that was summed")
    as_of: list[AsOf] = Field(description="by generation and partition: exactly which facts were summed")


class QueryAnswer(_AboutFacts):
    """Exact hits at each capacity asked, for each instance and in total."""

    total: Summary = Field(description="over all instances of the answer; each has the whole capacity to itself")
    instances: list[InstanceSummary] = Field(
        description="by instance_id: those asked for, or else those with a request in the window that are no variants"
    )
    variants: list[InstanceSummary] = Field(
        description="other analyses of the same requests, `<instance id>@<name>`, which are no part of the total; "
        "empty where instances are asked for"
    )


class CurveError(_Answer):
    """How far from the truth a reader of a curve may be between its points, at worst; at the points it is exact."""

    hit_blocks: Count = Field(
        description="at capacities of whole `unit_bytes`, linear interpolation between two points is off by no more "
        "than so many hit blocks; 0 where every breakpoint is a point",
        examples=[412],
    )
    hit_tokens: Count = Field(description="the same in hit tokens", examples=[210944])
    hit_rate: Rate = Field(description="the same in hit rate", examples=[0.001456857949556371])
    rise_hit_rate: Rate = Field(
        description="the largest rise of the hit rate from one point to the next: no line that rises from point to "
        "point, such as one that is straight on a logarithmic axis, is off by more",
        examples=[0.004111],
    )


class Curve(_Answer):
    """Hits as a function of the capacity: the lists are by capacity, ascending.

    Below the first capacity nothing is hit; from the last on the ceiling is reached. Hits change only at multiples of
    `unit_bytes`.
    """

    requests: Count = Field(description="requests counted", examples=[12031])
    total_input_tokens: Count = Field(description="sum of their prompt lengths", examples=[144793823])
    block_bytes: Count | None = Field(
        description="bytes of a block; null where the facts have several charges, or there are none", examples=[1048576]
    )
    block_size_tokens: Count | None = Field(
        description="tokens of a block; null where the facts have several sizes, or there are none", examples=[512]
    )
    unit_bytes: Count = Field(
        description="`block_bytes`, or the greatest common divisor of the charges", examples=[1048576]
    )
    ceiling: Ceiling = Field(description="hits at infinite capacity")
    largest_error: CurveError = Field(description="between the points")
    capacity_blocks: list[Count] | None = Field(
        description="capacities in blocks of `block_bytes`; null where that is", examples=[[15, 4053, 64854]]
    )
    capacity_bytes: list[Count] = Field(
        description="the capacities in bytes", examples=[[15728640, 4249878528, 68004347904]]
    )
    capacity_gb: list[Annotated[float, Field(ge=0)]] = Field(
        description="the capacities in binary GB; sent to /query they give these hits",
        examples=[[0.0146484375, 3.9580078125, 63.333984375]],
    )
    hit_blocks: list[Count] = Field(description="blocks hit at each capacity", examples=[[12030, 26252, 103775]])
    hit_tokens: list[Count] = Field(description="tokens hit at each capacity", examples=[[6159360, 13441024, 53132800]])
    hit_rates: list[Rate] = Field(
        description="hit_tokens / total_input_tokens; 0 where there are no tokens",
        examples=[[0.042538830610943064, 0.09282871438113779, 0.36695488059929406]],
    )


class InstanceCurve(Curve):
    """The curve of one instance."""

    instance_id: str = Field(description="the model deployment", examples=["qwen3-chat"])


class CurveAnswer(_AboutFacts):
    """The whole hit-rate curve, for each instance and in total; exact at every point."""

    total: Curve = Field(description="over all instances of the answer; each has the whole capacity to itself")
    instances: list[InstanceCurve] = Field(
        description="by instance_id: those asked for, or else those with a request in the window that are no variants"
    )
    variants: list[InstanceCurve] = Field(
        description="other analyses of the same requests, `<instance id>@<name>`, which are no part of the total; "
        "empty where instances are asked for"
    )


class SmallestCapacity(_Answer):
    """The smallest capacity that reaches a hit rate: a byte less does not."""

    hit_rate_wanted: Rate | None = Field(
        default=None, description="the hit rate asked for; null for a share", examples=[0.3]
    )
    of_ceiling_wanted: Rate | None = Field(
        default=None, description="the share of the ceiling asked for; null for a hit rate"
    )
    reachable: bool = Field(description="whether any request is counted and the ceiling is that high", examples=[True])
    capacity_blocks: Count | None = Field(
        default=None,
        description="in blocks; null where it is not reachable or the facts have several charges",
        examples=[23519],
    )
    capacity_bytes: Count | None = Field(
        default=None, description="null where it is not reachable", examples=[24661458944]
    )
    capacity_gb: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="in binary GB; null where it is not reachable", examples=[22.9677734375]
    )
    hit_blocks: Count | None = Field(
        default=None, description="hits at that capacity; null where it is not reachable", examples=[84840]
    )
    hit_tokens: Count | None = Field(
        default=None, description="the same in tokens; null where it is not reachable", examples=[43438080]
    )
    hit_rate: Rate | None = Field(
        default=None, description="the hit rate at that capacity; null where it is not reachable", examples=[0.3000013]
    )
    of_ceiling: Rate | None = Field(
        default=None, description="its share of the ceiling; null where it is not reachable", examples=[0.8034]
    )


class Capacities(_Answer):
    """Smallest capacities: first for each hit rate, then for each share of the ceiling, in the order asked."""

    requests: Count = Field(description="requests counted", examples=[12031])
    total_input_tokens: Count = Field(description="sum of their prompt lengths", examples=[144793823])
    block_bytes: Count | None = Field(
        description="bytes of a block; null where the facts have several charges, or there are none", examples=[1048576]
    )
    ceiling: Ceiling = Field(description="hits at infinite capacity: the highest hit rate that can be reached")
    capacities: list[SmallestCapacity] = Field(description="one for each value asked")


class InstanceCapacities(Capacities):
    """Smallest capacities of one instance."""

    instance_id: str = Field(description="the model deployment", examples=["qwen3-chat"])


class CapacityAnswer(_AboutFacts):
    """The inverse of a query: the smallest capacity for a hit rate, for each instance and in total."""

    total: Capacities = Field(
        description="the smallest capacity that, given to each instance, reaches the hit rate over all of them"
    )
    instances: list[InstanceCapacities] = Field(
        description="by instance_id: those asked for, or else those with a request in the window that are no variants"
    )
    variants: list[InstanceCapacities] = Field(
        description="other analyses of the same requests, `<instance id>@<name>`, which are no part of the total; "
        "empty where instances are asked for"
    )


class Registration(_Answer):
    """How an instance is analysed, as the lanes of this process know it."""

    group: str = Field(description="name of its group", examples=["chat"])
    block_size_tokens: Count = Field(description="tokens of one analysis block", examples=[512])
    trace_block_size_tokens: Count = Field(description="tokens of one block of the producer", examples=[128])
    block_bytes: Count = Field(description="bytes of one analysis block", examples=[1048576])
    enable_prefix_hash: bool = Field(description="whether independent keys are chained", examples=[False])
    ttl_seconds: Annotated[float, Field(ge=0)] = Field(description="time to live of a block; 0: off", examples=[0.0])
    capacity_gb: list[float] = Field(description="the configured capacities in binary GB", examples=[[8.0, 64.0]])


class LaneAnswer(_Answer):
    """The LRU state of an instance in one lane."""

    partition: Count = Field(description="of the requests topic", examples=[0])
    unique_blocks: Count = Field(description="blocks it holds", examples=[105592])
    memory_bytes: Count = Field(description="bytes of its arrays", examples=[8388608])


class ChargedRequests(_Answer):
    """Requests whose facts were recorded with one block size and one charge."""

    block_size_tokens: Count = Field(description="tokens of a block", examples=[512])
    block_bytes: Count = Field(description="bytes of a block", examples=[1048576])
    requests: Count = Field(description="requests counted", examples=[12031])


class ReuseDistance(_Answer):
    """How far apart uses of a block lie: each share of all hits needs no more than its capacity, and just that.

    A hit block's reuse distance is the smallest capacity that hits it, so these are quantiles of the hits by distance.
    """

    of_ceiling: list[Rate] = Field(description="shares of the hit tokens at infinite capacity", examples=[[0.5, 0.9]])
    capacity_blocks: list[Count] | None = Field(
        description="for each share in blocks; null where the facts have several charges, or there are none",
        examples=[[8001, 23519]],
    )
    capacity_bytes: list[Count] = Field(description="for each share in bytes", examples=[[8389656576, 24661458944]])
    capacity_gb: list[Annotated[float, Field(ge=0)]] = Field(
        description="for each share in binary GB", examples=[[7.8134765625, 22.9677734375]]
    )


class InstanceAnswer(_Answer):
    """What is known of one instance."""

    instance_id: str = Field(description="the model deployment", examples=["qwen3-chat"])
    registration: Registration | None = Field(description="null where no lane of this process holds it")
    unique_blocks: Count | None = Field(
        description="blocks of its LRU state; null where no lane of this process holds it", examples=[105592]
    )
    memory_bytes: Count | None = Field(
        description="bytes of its LRU state; null where no lane of this process holds it", examples=[8388608]
    )
    lanes: list[LaneAnswer] | None = Field(
        description="the lanes of this process that hold a state of it; null where none does"
    )
    charges: list[ChargedRequests] = Field(description="block sizes and charges that its facts were recorded with")
    summary: Summary = Field(
        description="its hits at each registered capacity; at none where the registration is null, but with the ceiling"
    )
    reuse_distance: ReuseDistance = Field(description="spread of the reuse distances of its hits")


class InstancesAnswer(_AboutFacts):
    """Every instance that has facts or a lane here."""

    lanes_in_this_process: bool = Field(
        description="false where the lanes run elsewhere: then registration, blocks and memory are null",
        examples=[True],
    )
    instances: list[InstanceAnswer] = Field(
        description="by instance_id: those asked for, or else those with a request in the window or a lane here"
    )


class ParameterProblem(_Answer):
    """One parameter that could not be used."""

    parameter: str = Field(description="its name", examples=["capacity_gb"])
    value: str | None = Field(description="what was sent; null where it is missing", examples=["nan"])
    detail: str = Field(
        description="what is wrong and what to send instead",
        examples=["capacity_gb 'nan' is not a finite number; send a number of GB, or -1 for infinite"],
    )


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
    stopped: bool = Field(default=False, description="whether it goes on only after someone has seen to it")


class Readiness(_Answer):
    """Whether answers can be relied on now, and if not, what is waited for."""

    ready: bool = Field(description="whether nothing is waited for", examples=[False])
    waiting: list[Waiting] = Field(description="empty when ready")


class Health(_Answer):
    """The process lives and serves HTTP."""

    status: str = Field(description="always ok: a process that does not live does not answer", examples=["ok"])
    version: str = Field(description="version of the service", examples=["0.1.0"])
