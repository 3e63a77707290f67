"""The registry file: which instances exist and how each is analysed."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

_INT64_END = 2**63
_BLOCK_TOKENS_END = 2**31  # so that a request's keys times its block stay far below 64 bits
_NS_DIGITS = 9

VARIANT_NAME = "[A-Za-z0-9_-]+"
"""What a variant's name looks like. No dot, so that no e-mail address or host looks like the id of a variant."""

Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1, lt=_INT64_END)]
BlockTokens = Annotated[int, Field(ge=1, lt=_BLOCK_TOKENS_END)]


def _whole_nanoseconds(seconds: Decimal) -> Decimal:
    scaled = seconds.scaleb(_NS_DIGITS)
    if scaled != scaled.to_integral_value():
        raise PydanticCustomError("ttl_precision", "must be a whole number of nanoseconds; give 9 decimals at most")
    return seconds


def _number_of_seconds(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise PydanticCustomError("ttl_type", "must be a number of seconds")
    return value


def whole_nanoseconds(seconds: Decimal) -> int:
    """A `TtlSeconds` in nanoseconds, exact."""
    return int(seconds.scaleb(_NS_DIGITS))


def exact_seconds(nanoseconds: int) -> Decimal:
    """The inverse of `whole_nanoseconds`, with no digit more than it needs."""
    return Decimal(nanoseconds).scaleb(-_NS_DIGITS).normalize()


def _full_attention_only(value: int) -> int:
    if value != 0:
        raise PydanticCustomError(
            "linear_step", "must be 0: only full attention is analysed, where every block has the same size"
        )
    return value


def _charged_once(specs: dict[str, int] | None, info: ValidationInfo, *, needed: bool) -> dict[str, int] | None:
    """Check location_specs against a block_bytes that was read before it."""
    if "block_bytes" not in info.data:
        return specs
    if needed and specs is None and info.data["block_bytes"] is None:
        raise PydanticCustomError(
            "charge_missing", "is absent and so is block_bytes; add block_bytes, the bytes of one block"
        )
    if specs is not None and info.data["block_bytes"] is not None:
        raise PydanticCustomError("charge_twice", "excludes block_bytes; keep one of the two")
    if specs is not None and not 0 < sum(specs.values()) < _INT64_END:
        raise PydanticCustomError("charge_range", "must sum to a positive 64-bit number of bytes")
    return specs


def only_coarser(trace_block: int | None, info: ValidationInfo) -> int | None:
    """Check trace_block_size_tokens against a block_size_tokens that was read before it."""
    block = info.data.get("block_size_tokens")
    if trace_block is not None and block is not None and block % trace_block:
        raise PydanticCustomError(
            "granularity",
            "must divide block_size_tokens {block}: blocks can only be made coarser, by a whole factor",
            {"block": block},
        )
    return trace_block


def _charged_once_at_most(specs: dict[str, int] | None, info: ValidationInfo) -> dict[str, int] | None:
    return _charged_once(specs, info, needed=False)


def stated_charge(block_bytes: int | None, specs: dict[str, int] | None) -> int | None:
    """Bytes of one analysis block; None where neither says it."""
    return block_bytes if specs is None else sum(specs.values())


LinearStep = Annotated[int, AfterValidator(_full_attention_only)]
TtlSeconds = Annotated[
    Decimal,
    Strict(False),
    Field(ge=0, le=_INT64_END // 10**_NS_DIGITS, allow_inf_nan=False, description="0: blocks never expire"),
    AfterValidator(_whole_nanoseconds),
    BeforeValidator(_number_of_seconds),
]
CapacityGb = Annotated[
    tuple[Annotated[float, Field(strict=True, allow_inf_nan=False)], ...],
    Field(strict=False, description="slots in binary GB; negative: infinite"),
]
BlockBytes = Annotated[Positive, Field(description="bytes of one analysis block")]
LocationSpecs = Annotated[
    dict[Name, Positive],
    Field(description="instead of block_bytes: bytes of each part of the full group, summed"),
]
StatedSpecs = Annotated[LocationSpecs | None, AfterValidator(_charged_once_at_most)]
"""Where the charge may be left out."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GroupEntry(_Entry):
    """What the instances of one model deployment share."""

    name: Name = Field(description="named by its instances")
    enable_prefix_hash: bool = Field(
        default=False, description="keys are independent per-block hashes and must be chained"
    )
    ttl_seconds: TtlSeconds = Field(
        default=Decimal(0), description="a block is gone so long after it was last used; 0: blocks never expire"
    )
    capacity_gb: CapacityGb = Field(
        default=(), description="capacities in binary GB that are counted as requests come; negative: infinite"
    )
    linear_step: LinearStep = Field(default=0, description="0: only full attention is analysed")


class VariantEntry(_Entry):
    """Another analysis of an instance's requests, in the same pass; what it does not state is the entry's."""

    name: Annotated[
        str,
        Field(
            pattern=f"^{VARIANT_NAME}$",
            description="letters, digits, - and _; the variant's instance id is INSTANCE_ID@NAME",
        ),
    ]
    block_size_tokens: BlockTokens | None = Field(
        default=None, description="tokens of one analysis block; another than the entry's needs a charge of its own"
    )
    block_bytes: BlockBytes | None = Field(default=None, description="as of an instance; default: the entry's")
    location_specs: StatedSpecs = Field(default=None, description="likewise")
    ttl_seconds: TtlSeconds | None = Field(default=None, description="as of a group; default: the group's")
    capacity_gb: CapacityGb | None = Field(default=None, description="likewise")

    @property
    def charge(self) -> int | None:
        """Bytes of one analysis block; None where it is the entry's."""
        return stated_charge(self.block_bytes, self.location_specs)


class InstanceEntry(_Entry):
    """One instance, or all that a glob covers."""

    instance_id: Name = Field(description="exact id, or a glob with * ? [...]; exact wins, then the longest glob")
    group: Name = Field(description="name of its group")
    block_size_tokens: BlockTokens = Field(description="tokens of one analysis block")
    trace_block_size_tokens: BlockTokens | None = Field(
        default=None, description="tokens of one block as the producer hashed it; default: block_size_tokens"
    )
    block_bytes: BlockBytes | None = Field(
        default=None, description="bytes of one analysis block in the cache; it or location_specs"
    )
    location_specs: LocationSpecs | None = Field(
        default=None,
        validate_default=True,
        description="instead of block_bytes: bytes of each part of the full group, by name, which are summed",
    )
    linear_step: LinearStep = Field(default=0, description="0: only full attention is analysed")
    variants: Annotated[tuple[VariantEntry, ...], Field(strict=False)] = Field(
        default=(), description="further analyses of the same requests, each an instance of its own"
    )

    @field_validator("trace_block_size_tokens")
    @classmethod
    def _only_coarser(cls, value: int | None, info: ValidationInfo) -> int | None:
        return only_coarser(value, info)

    @field_validator("location_specs")
    @classmethod
    def _is_charged_once(cls, value: dict[str, int] | None, info: ValidationInfo) -> dict[str, int] | None:
        return _charged_once(value, info, needed=True)

    @property
    def charge(self) -> int:
        """Bytes of one analysis block."""
        return sum((self.location_specs or {}).values()) if self.block_bytes is None else self.block_bytes


class RegistryFile(_Entry):
    """The whole file."""

    groups: Annotated[tuple[GroupEntry, ...], Field(strict=False, min_length=1)]
    instances: Annotated[tuple[InstanceEntry, ...], Field(strict=False, min_length=1)]
