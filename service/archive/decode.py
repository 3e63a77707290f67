"""From records of the facts topic to columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from litehit.curves import Int64Array
from litehit.facts import FactBatch
from litehit.request import MAX_INPUT_TOKENS
from schemas.dead_letter import SOURCE_HEADER
from schemas.fact import RequestFact
from service.archive.archived_facts import ArchivedFacts
from service.archive.errors import UndecodableFact

# What RequestFact.model_validate_json calls.
_validate = RequestFact.__pydantic_validator__.validate_json


@dataclass(frozen=True, slots=True)
class FetchedFacts:
    """Consecutive records of one facts partition, as they were fetched.

    Attributes:
        offsets: of each record; ascending.
        values: of each record; None is a tombstone.
        sources: the header `litehit-source` of each record; None where it is absent.
    """

    offsets: list[int]
    values: list[bytes | None]
    sources: list[bytes | None]

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, low: int, high: int | None = None) -> FetchedFacts:
        """The records `low:high`."""
        return FetchedFacts(self.offsets[low:high], self.values[low:high], self.sources[low:high])

    def from_offset(self, offset: int) -> FetchedFacts:
        """The records from an offset on."""
        return self.slice(bisect_left(self.offsets, offset))


def source_header(headers: Sequence[tuple[str, bytes | None]] | None) -> bytes | None:
    """The header `litehit-source` of a record."""
    for name, value in headers or ():
        if name == SOURCE_HEADER:
            return value
    return None


def decode(fetched: FetchedFacts, partition: int) -> ArchivedFacts:
    """Turn records into facts.

    Args:
        fetched: the records.
        partition: their partition, which must be their sources' too.

    Raises:
        UndecodableFact: a record is no fact, or its source is not `<topic>/<partition>/<offset>`.
    """
    return ArchivedFacts(
        decode_facts(fetched.values),
        np.array(fetched.offsets, np.int64),
        _source_offsets(fetched.sources, partition),
    )


def decode_facts(values: Sequence[bytes | None]) -> FactBatch:
    """Turn the JSON of facts into columns: as the lanes write it at once, any other through the model, fact by fact.

    Raises:
        UndecodableFact: a value is no fact, or one of more tokens than a request may have.
    """
    written = [value or b"" for value in values]
    read = FactBatch.from_json(written)
    if read is not None:
        return read
    facts: list[RequestFact] = []
    try:
        for value in written:
            facts.append(_validate(value))  # noqa: PERF401 (how many came before tells the place of an error)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UndecodableFact(len(facts), f"{field}: {first['msg']}" if field else first["msg"]) from None
    batch = FactBatch.from_facts(facts)
    if (batch.input_token_lens > MAX_INPUT_TOKENS).any():
        index = int(np.argmax(batch.input_token_lens > MAX_INPUT_TOKENS))
        raise UndecodableFact(
            index, f"input_token_len: {facts[index].input_token_len} is more than {MAX_INPUT_TOKENS}, and no request's"
        )
    return batch


def _source_offsets(sources: Sequence[bytes | None], partition: int) -> Int64Array:
    offsets = np.empty(len(sources), np.int64)
    expected = b"%d" % partition
    for index, source in enumerate(sources):
        if source is None:
            raise UndecodableFact(index, f"the header {SOURCE_HEADER} is absent")
        _, found, offset = (b"//" + source).rsplit(b"/", 2)
        if found != expected or not offset.isdigit():
            raise UndecodableFact(
                index, f"the header {SOURCE_HEADER} is {source!r}; it must be <topic>/{partition}/<offset>"
            )
        offsets[index] = int(offset)
    return offsets
