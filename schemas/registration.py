"""The registration: what a stream itself says of an instance, over the registry file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from schemas.registry import (
    BlockBytes,
    BlockTokens,
    CapacityGb,
    LinearStep,
    Name,
    StatedSpecs,
    TtlSeconds,
    only_coarser,
    stated_charge,
)


class RegisterEvent(BaseModel):
    """Registers an instance, from this record on. What it does not state stays as it is; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    type: Literal["register"]
    instance_id: Name | None = Field(default=None, description="an exact id; absent: the record's key")
    block_size_tokens: BlockTokens | None = Field(default=None, description="tokens of one analysis block")
    trace_block_size_tokens: BlockTokens | None = Field(
        default=None,
        validate_default=True,
        description="tokens of one block as the producer hashed it, beside block_size_tokens; default: the same",
    )
    block_bytes: BlockBytes | None = None
    location_specs: StatedSpecs = None
    ttl_seconds: TtlSeconds | None = None
    enable_prefix_hash: bool | None = Field(
        default=None, description="keys are independent per-block hashes and must be chained"
    )
    capacity_gb: CapacityGb | None = None
    linear_step: LinearStep = 0
    reset: Annotated[
        bool, Field(description="begin with an empty cache, which a change of what it depends on needs")
    ] = False

    @field_validator("trace_block_size_tokens")
    @classmethod
    def _beside_its_block(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("block_size_tokens", value) is None:
            raise PydanticCustomError("block_missing", "needs block_size_tokens beside it; add it")
        return only_coarser(value, info)

    @property
    def charge(self) -> int | None:
        """Bytes of one analysis block; None where it stays as it is."""
        return stated_charge(self.block_bytes, self.location_specs)
