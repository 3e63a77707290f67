"""The request event: what a trace tap publishes for every request."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, StrictInt, StrictStr, TypeAdapter

from schemas.block_keys import BlockKeys
from schemas.registration import RegisterEvent

ALIASES = (("keys", "block_keys"), ("input_len", "input_token_len"))
"""Other names of fields; a record with both must say the same twice."""

Int64 = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]


def _tell_of_aliases(schema: dict[str, Any]) -> None:
    # pydantic's JSON Schema knows one name a field; a record with the other one must not fail it.
    properties = schema["properties"]
    for alias, field in ALIASES:
        properties[alias] = properties[field] | {"title": alias, "description": f"the same as {field}"}
    schema["required"].remove("block_keys")
    schema["anyOf"] = [{"required": ["block_keys"]}, {"required": ["keys"]}]


class RequestEvent(BaseModel):
    """One request: the keys of its prompt's full blocks, and its length.

    Unknown fields are allowed and ignored. With the aliases, a tair standard trace line is a request event.
    """

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        arbitrary_types_allowed=True,
        populate_by_name=True,
        json_schema_extra=_tell_of_aliases,
    )

    type: Literal["request", "get"] = Field(description="get is the same as request")
    instance_id: Annotated[StrictStr, Field(min_length=1)] | None = Field(
        default=None, description="the model deployment; absent: the record's key"
    )
    trace_id: StrictStr = Field(default="", description="the producer's name for the request")
    timestamp_ns: Int64 | None = Field(
        default=None, description="time of the request in nanoseconds; absent: the record's timestamp"
    )
    block_keys: BlockKeys = Field(
        validation_alias=AliasChoices("block_keys", "keys"),
        description="prefix keys of the full blocks, front to back",
    )
    input_token_len: Int64 = Field(
        default=0,
        validation_alias=AliasChoices("input_token_len", "input_len"),
        description="prompt length in tokens, 2**40 at most; absent or <= 0: number of keys times the trace block size",
    )
    trace_block_size_tokens: Annotated[Int64, Field(ge=1)] | None = Field(
        default=None, description="tokens of a key's block; where it is sent it must be the registered one"
    )


class WriteEvent(BaseModel):
    """A cache write, counted and ignored: a request's blocks count as written when the request is read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["write"]


Event: TypeAlias = Annotated[RequestEvent | WriteEvent | RegisterEvent, Discriminator("type")]
"""Any record of the requests topic."""

EVENT: TypeAdapter[RequestEvent | WriteEvent | RegisterEvent] = TypeAdapter(Event)
