"""From records of the facts topic to columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simdjson
from pydantic import ValidationError

from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch
from schemas.dead_letter import SOURCE_HEADER
from schemas.fact import RequestFact
from service.archive.archived_facts import ArchivedFacts
from service.archive.errors import UndecodableFact

_FIELDS = list(RequestFact.model_fields)
_OPENING = b'{"trace_id":"'
_CURVE_OPENING = b',"hit_curve":'
_DIGITS = b"0123456789"
# Above it sums could leave 64 bits; such facts, if there are any, take the way through pydantic.
_SMALL = 2**40


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
    """Turn the JSON of facts into columns.

    `RequestFact` defines what a fact is. Facts as `RequestFact.to_json` writes them are read here several times
    faster; a batch with anything else in it goes through the model, which accepts it or says what is wrong.

    Raises:
        UndecodableFact: a value is no fact.
    """
    batch = _decode_canonical(values)
    return FactBatch.from_facts(_through_model(values)) if batch is None else batch


def _through_model(values: Sequence[bytes | None]) -> list[RequestFact]:
    facts = []
    for index, value in enumerate(values):
        if value is None:
            raise UndecodableFact(index, "the record has no value")
        try:
            facts.append(RequestFact.model_validate_json(value))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise UndecodableFact(index, f"{field}: {first['msg']}" if field else first["msg"]) from None
    return facts


def _decode_canonical(values: Sequence[bytes | None]) -> FactBatch | None:
    """The columns of facts as `to_json` writes them; None if any is not certainly one of those."""
    parser = simdjson.Parser()
    rows = []
    curves = []
    for value in values:
        read = None if value is None else _read_canonical(parser, value)
        if read is None:
            return None
        rows.append(read[0])
        curves.append(read[1])
    return _columns(rows, curves)


def _read_canonical(parser: simdjson.Parser, value: bytes) -> tuple[list[Any], bytes] | None:
    """A fact's first six fields, of whatever types, and its curve as int64 pairs; None if the form is another.

    Nothing of the parsed document outlives the call: the parser refuses to go on while anything does.
    """
    if not value.startswith(_OPENING):
        return None
    try:
        document = parser.parse(value)
        if not isinstance(document, simdjson.Object) or list(document) != _FIELDS:
            return None
        # Not values(), which turns the curve into Python lists.
        *row, curve = [document[name] for name in _FIELDS]
        if not isinstance(curve, simdjson.Array):
            return None
        flat = bytes(curve.as_buffer(of_type="i"))
    except (ValueError, TypeError, RuntimeError):  # the last for an integer beyond 64 bits
        return None
    return (row, flat) if _is_pairs(value, len(flat) // 16) else None


def _is_pairs(value: bytes, segments: int) -> bool:
    """Whether a fact ends in a curve of so many pairs of plain positive numbers; the parser's flat view hides it."""
    start = value.rfind(_CURVE_OPENING) + len(_CURVE_OPENING)
    structure = b"[" + b",".join([b"[,]"] * segments) + b"]}"
    return value[start:].translate(None, _DIGITS) == structure


def _columns(rows: list[list[Any]], curves: list[bytes]) -> FactBatch | None:
    if not rows:
        return FactBatch.from_facts([])
    trace_ids, instance_ids, *numbers = zip(*rows, strict=True)
    if set(map(type, trace_ids)) | set(map(type, instance_ids)) != {str}:
        return None
    if any(set(map(type, column)) != {int} for column in numbers):
        return None
    try:
        timestamps_ns, input_token_lens, block_sizes, block_bytes = (np.array(column, np.int64) for column in numbers)
    except OverflowError:
        return None
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(curve) // 16 for curve in curves], out=offsets[1:])
    pairs = np.frombuffer(b"".join(curves), np.int64).reshape(-1, 2)
    flat = FlatCurves(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), offsets)
    batch = FactBatch(trace_ids, instance_ids, timestamps_ns, input_token_lens, block_sizes, block_bytes, flat)
    return batch if _is_valid(batch) else None


def _is_valid(batch: FactBatch) -> bool:
    """Whether the numbers are such as `RequestFact` takes."""
    curves = batch.hit_curves
    starts, runs = curves.starts, curves.runs
    if batch.input_token_lens.min() < 0 or batch.block_size_tokens.min() < 1 or batch.block_bytes.min() < 1:
        return False
    if len(starts) == 0:
        return True
    if min(starts.min(), runs.min()) < 1 or max(starts.max(), runs.max()) > _SMALL:
        return False
    gaps = starts[1:] - (starts[:-1] + runs[:-1])
    firsts = curves.offsets[1:-1]
    # Only gaps inside a curve count; those between two curves may be anything.
    inside = np.ones(len(starts) - 1, np.bool_)
    inside[firsts[(firsts > 0) & (firsts < len(starts))] - 1] = False
    if (gaps[inside] < 1).any():
        return False
    sums = np.zeros(len(runs) + 1, np.int64)
    np.cumsum(runs, out=sums[1:])
    blocks = sums[curves.offsets[1:]] - sums[curves.offsets[:-1]]
    return bool((blocks <= batch.input_token_lens // batch.block_size_tokens).all())


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
