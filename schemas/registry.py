"""The registry file: which instances exist and how each is analysed."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

_INT64_END = 2**63
_BLOCK_TOKENS_END = 2**31  # so that a request's keys times its block stay far below 64 bits
_NS_DIGITS = 9

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1, lt=_INT64_END)]
BlockTokens = Annotated[int, Field(ge=1, lt=_BLOCK_TOKENS_END)]


def _whole_nanoseconds(seconds: Decimal) -> Decimal:
    scaled = seconds.scaleb(_NS_DIGITS)
    if scaled != scaled.to_integral_value():
        raise PydanticCustomError("ttl_precision", "must be a whole number of nanoseconds; give 9 decimals at most")
    return seconds


def _full_attention_only(value: int) -> int:
    if value != 0:
        raise PydanticCustomError(
            "linear_step", "must be 0: only full attention is analysed, where every block has the same size"
        )
    return value


LinearStep = Annotated[int, AfterValidator(_full_attention_only)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GroupEntry(_Entry):
    """What the instances of one model deployment share."""

    name: Name
    enable_prefix_hash: bool = Field(
        default=False, description="keys are independent per-block hashes and must be chained"
    )
    ttl_seconds: Annotated[
        Decimal,
        Strict(False),
        Field(ge=0, le=_INT64_END // 10**_NS_DIGITS, allow_inf_nan=False, description="0: blocks never expire"),
        AfterValidator(_whole_nanoseconds),
    ] = Decimal(0)
    capacity_gb: Annotated[
        tuple[Annotated[float, Field(strict=True, allow_inf_nan=False)], ...],
        Field(strict=False, description="slots in binary GB; negative: infinite"),
    ] = ()
    linear_step: LinearStep = 0

    @field_validator("ttl_seconds", mode="before")
    @classmethod
    def _ttl_is_a_number(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise PydanticCustomError("ttl_type", "must be a number of seconds")
        return value

    @property
    def ttl_ns(self) -> int:
        """The time to live in nanoseconds, exact."""
        return int(self.ttl_seconds.scaleb(_NS_DIGITS))


class InstanceEntry(_Entry):
    """One instance, or all that a glob covers."""

    instance_id: Name = Field(description="exact id, or a glob with * ? [...]; exact wins, then the longest glob")
    group: Name
    block_size_tokens: BlockTokens = Field(description="tokens of one analysis block")
    trace_block_size_tokens: BlockTokens | None = Field(
        default=None, description="tokens of one block as the producer hashed it; default: block_size_tokens"
    )
    block_bytes: Positive | None = Field(default=None, description="bytes of one analysis block")
    location_specs: dict[Name, Positive] | None = Field(
        default=None,
        validate_default=True,
        description="instead of block_bytes: bytes of each part of the full group, summed",
    )
    linear_step: LinearStep = 0

    @field_validator("trace_block_size_tokens")
    @classmethod
    def _only_coarser(cls, value: int | None, info: ValidationInfo) -> int | None:
        block = info.data.get("block_size_tokens")
        if value is not None and block is not None and block % value:
            raise PydanticCustomError(
                "granularity",
                "must divide block_size_tokens {block}: blocks can only be made coarser, by a whole factor",
                {"block": block},
            )
        return value

    @field_validator("location_specs")
    @classmethod
    def _one_charge(cls, value: dict[str, int] | None, info: ValidationInfo) -> dict[str, int] | None:
        if "block_bytes" not in info.data:
            return value
        if value is None and info.data["block_bytes"] is None:
            raise PydanticCustomError("charge_missing", "is absent and so is block_bytes; add one of the two")
        if value is not None and info.data["block_bytes"] is not None:
            raise PydanticCustomError("charge_twice", "excludes block_bytes; keep one of the two")
        if value is not None and not 0 < sum(value.values()) < _INT64_END:
            raise PydanticCustomError("charge_range", "must sum to a positive 64-bit number of bytes")
        return value

    @property
    def charge(self) -> int:
        """Bytes of one analysis block."""
        return sum((self.location_specs or {}).values()) if self.block_bytes is None else self.block_bytes


class RegistryFile(_Entry):
    """The whole file."""

    groups: Annotated[tuple[GroupEntry, ...], Field(strict=False, min_length=1)]
    instances: Annotated[tuple[InstanceEntry, ...], Field(strict=False, min_length=1)]
