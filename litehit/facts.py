"""Batches of facts in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litehit.ascii_texts import texts_at, texts_joined
from litehit.curves import FlatCurves, Int64Array
from litehit.facts_text import columns_of_text, facts_text
from litehit.text_kernels import parts_of, texts_of
from litehit.written_texts import json_strings
from schemas.fact import RequestFact

_COLUMNS = tuple(RequestFact.model_fields)
_JSON_GLUE = texts_of(
    (
        '{"trace_id":"',
        '","instance_id":"',
        '","timestamp_ns":',
        ',"input_token_len":',
        ',"block_size_tokens":',
        ',"block_bytes":',
        ',"hit_curve":[',
        "]}",
    )
)


@dataclass(frozen=True, slots=True)
class FactBatch:
    """R facts in columns; the fields are those of `RequestFact`, in plural.

    Attributes:
        trace_ids, instance_ids: R strings.
        timestamps_ns: int64[R], nanoseconds.
        input_token_lens, block_size_tokens: int64[R], tokens.
        block_bytes: int64[R], bytes.
        hit_curves: R curves, in blocks.
    """

    trace_ids: Sequence[str]
    instance_ids: Sequence[str]
    timestamps_ns: Int64Array
    input_token_lens: Int64Array
    block_size_tokens: Int64Array
    block_bytes: Int64Array
    hit_curves: FlatCurves

    def __len__(self) -> int:
        return len(self.trace_ids)

    def __iter__(self) -> Iterator[RequestFact]:
        """The facts one by one; their values are trusted, not validated again."""
        for row in zip(
            self.trace_ids,
            self.instance_ids,
            self.timestamps_ns.tolist(),
            self.input_token_lens.tolist(),
            self.block_size_tokens.tolist(),
            self.block_bytes.tolist(),
            self.hit_curves,
            strict=True,
        ):
            yield RequestFact.model_construct(**dict(zip(_COLUMNS, row, strict=True)))

    def to_json(self) -> list[bytes]:
        """`RequestFact.to_json` of each fact, many times faster than by way of the facts."""
        return parts_of(*facts_text(self, _JSON_GLUE, json_strings))

    @classmethod
    def from_json(cls, values: Sequence[bytes]) -> FactBatch | None:
        """Facts that `to_json` has written; None where one is written otherwise, even if it is valid, or is no fact.

        So it is where an id is not in plain ASCII. One fact of more than `MAX_INPUT_TOKENS` is none.
        """
        columns = columns_of_text(values, _JSON_GLUE)
        return None if columns is None else cls(*columns)

    @classmethod
    def from_facts(cls, facts: Sequence[RequestFact]) -> FactBatch:
        """Turn facts into columns."""

        def column(name: str) -> NDArray[np.int64]:
            return np.fromiter((getattr(fact, name) for fact in facts), np.int64, len(facts))

        return cls(
            [fact.trace_id for fact in facts],
            [fact.instance_id for fact in facts],
            column("timestamp_ns"),
            column("input_token_len"),
            column("block_size_tokens"),
            column("block_bytes"),
            FlatCurves.from_curves(fact.hit_curve for fact in facts),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[FactBatch]) -> FactBatch:
        """Append batches, at least one, in the order given."""
        return cls(
            texts_joined([part.trace_ids for part in parts]),
            texts_joined([part.instance_ids for part in parts]),
            np.concatenate([part.timestamps_ns for part in parts]),
            np.concatenate([part.input_token_lens for part in parts]),
            np.concatenate([part.block_size_tokens for part in parts]),
            np.concatenate([part.block_bytes for part in parts]),
            FlatCurves.concatenate([part.hit_curves for part in parts]),
        )

    def select(self, rows: NDArray[np.int64]) -> FactBatch:
        """The facts of the given row indices, in that order."""
        return FactBatch(
            texts_at(self.trace_ids, rows),
            texts_at(self.instance_ids, rows),
            self.timestamps_ns[rows],
            self.input_token_lens[rows],
            self.block_size_tokens[rows],
            self.block_bytes[rows],
            self.hit_curves.select(rows),
        )
