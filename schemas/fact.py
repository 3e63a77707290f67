"""The fact: what one request says about every capacity at once."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

HitCurve: TypeAlias = tuple[tuple[int, int], ...]
"""Segments (start_required_blocks, run_length), in blocks, ascending; () when the first block is cold."""

_Positive = Annotated[int, Field(ge=1, lt=2**63)]
_Blocks = Annotated[int, Field(ge=1, lt=2**62)]  # so that a segment's end fits in 64 bits
_Segment = Annotated[tuple[_Blocks, _Blocks], Strict(False)]


class RequestFact(BaseModel):
    """One request's hit curve and the columns that make it self-describing.

    The fields, in this order, are the facts CSV's columns and the keys of the JSON on the facts topic.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    trace_id: str
    instance_id: str
    timestamp_ns: Annotated[int, Field(ge=-(2**63), lt=2**63, description="the request's own time")]
    input_token_len: Annotated[int, Field(ge=0, lt=2**63, description="tokens; the denominator of the hit rate")]
    block_size_tokens: Annotated[_Positive, Field(description="tokens of one block")]
    block_bytes: Annotated[_Positive, Field(description="bytes of one block")]
    hit_curve: Annotated[
        tuple[_Segment, ...],
        Field(strict=False, description="segments [start_required_blocks, run_length]"),
    ]

    @model_validator(mode="after")
    def _curve_is_canonical(self) -> RequestFact:
        end = 0
        blocks = 0
        for position, (start, run) in enumerate(self.hit_curve):
            # Adjacent segments never merge, so a start is always past the previous segment's successor.
            if position and start <= end:
                raise ValueError(
                    f"hit_curve[{position}] starts at {start} blocks; the previous segment ends at {end - 1}, "
                    f"so it must start at {end + 1} or later"
                )
            end = start + run
            blocks += run
        if blocks * self.block_size_tokens > self.input_token_len:
            raise ValueError(
                f"hit_curve counts {blocks} blocks of {self.block_size_tokens} tokens, "
                f"more than input_token_len {self.input_token_len}"
            )
        return self

    def to_json(self) -> bytes:
        """Compact JSON in field order: the value of a record on the facts topic. The same fact, the same bytes."""
        return self.__pydantic_serializer__.to_json(self)
