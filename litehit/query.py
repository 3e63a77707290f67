"""The facts query (SPEC section 7): facts and capacities to JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, BinaryIO

import numpy as np

from litehit.curves import Int64Array
from litehit.errors import OptionError
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from litehit.totals import SlotTotals
from litehit.variants import base_of

MAX_CAPACITIES = 1000
_CELLS = 1 << 16  # numbers of requests and slots that are in memory at once


@dataclass(frozen=True, slots=True)
class _Slots:
    """K capacities, as asked and in bytes, and what a block is charged."""

    capacity_gb: tuple[float, ...]
    capacity_bytes: tuple[int, ...]
    block_bytes: int | None


def query(
    facts: Iterable[FactBatch],
    capacity_gb: Sequence[float],
    sink: BinaryIO,
    *,
    requests: bool = True,
    with_variants: bool = False,
) -> SlotTotals:
    """Write one line a fact, then one summary an instance by instance_id, then the total.

    A variant of an instance that has facts too says so in its summary (`variant_of`) and is no part of the total, which
    would count its requests again.

    Args:
        facts: batches of facts, in any grouping; read once.
        capacity_gb: the slots, in binary GB; order and duplicates are kept, negative = infinite.
        sink: where the lines go.
        requests: whether to write the lines of the requests; otherwise only the summaries.
        with_variants: whether variants are taken for instances like any other.

    Returns:
        The total.

    Raises:
        CapacityError: a capacity is no finite number.
        OptionError: there is no capacity, or more than `MAX_CAPACITIES`.
        FactsError: a row of the facts is malformed; what was written by then must not be used.
    """
    total = SlotTotals(tuple(capacity_gb))
    sink.writelines(query_lines(facts, total, requests=requests, with_variants=with_variants))
    return total


def query_lines(
    facts: Iterable[FactBatch],
    total: SlotTotals,
    *,
    requests: bool = True,
    block_bytes: int | None = None,
    with_variants: bool = False,
) -> Iterator[bytes]:
    """The lines that `query` writes, some at a time.

    Args:
        facts: batches of facts, in any grouping; read once.
        total: names the slots; the facts are added to it.
        requests: whether to give the lines of the requests; otherwise only the summaries.
        block_bytes: bytes charged to every block instead of what each fact carries; None = each fact's own.
        with_variants: whether variants are taken for instances like any other.

    Raises:
        as `query`.
    """
    if not 1 <= len(total.capacity_gb) <= MAX_CAPACITIES:
        raise OptionError(f"{len(total.capacity_gb)} capacities were given; give 1 to {MAX_CAPACITIES}")
    slots = _Slots(total.capacity_gb, tuple(map(HitCurveProjector.capacity_bytes, total.capacity_gb)), block_bytes)
    totals: dict[str, SlotTotals] = {}
    for batch in facts:
        for part in _parts(batch, max(1, _CELLS // len(slots.capacity_gb))):
            hit_blocks = _project(part, slots)
            if requests:
                yield b"".join(map(_line, _request_rows(part, hit_blocks)))
            _add(totals, part, hit_blocks, slots)
    for instance_id in sorted(totals):
        summary = totals[instance_id].summary()
        base = None if with_variants else base_of(instance_id)
        if base in totals:
            yield _line({"summary": "instance", "instance_id": instance_id, **summary, "variant_of": base})
            continue
        yield _line({"summary": "instance", "instance_id": instance_id, **summary})
        total.merge(totals[instance_id])
    yield _line({"summary": "total", **total.summary()})


def _parts(batch: FactBatch, rows: int) -> Iterator[FactBatch]:
    """A batch in parts of so many rows."""
    if len(batch) <= rows:
        yield batch
        return
    for first in range(0, len(batch), rows):
        yield batch.select(np.arange(first, min(first + rows, len(batch))))


def _project(batch: FactBatch, slots: _Slots) -> Int64Array:
    """Hit blocks of R facts at K capacities: int64[R, K]."""
    hits = np.empty((len(batch), len(slots.capacity_bytes)), np.int64)
    charges = batch.block_bytes if slots.block_bytes is None else np.full(len(batch), slots.block_bytes)
    for block_bytes in np.unique(charges).tolist():
        rows = np.flatnonzero(charges == block_bytes)
        curves = batch.hit_curves if len(rows) == len(batch) else batch.hit_curves.select(rows)
        for slot, capacity in enumerate(slots.capacity_bytes):
            hits[rows, slot] = HitCurveProjector.project_bytes_batch(curves, capacity, block_bytes)
    return hits


def _request_rows(batch: FactBatch, hit_blocks: Int64Array) -> Iterator[dict[str, Any]]:
    hit_tokens = hit_blocks * batch.block_size_tokens[:, None]
    tokens = batch.input_token_lens[:, None]
    rates = np.divide(hit_tokens, tokens, out=np.zeros(hit_tokens.shape), where=tokens > 0)
    rows = zip(
        batch.trace_ids,
        batch.instance_ids,
        batch.timestamps_ns.tolist(),
        batch.input_token_lens.tolist(),
        hit_blocks.tolist(),
        rates.tolist(),
        strict=True,
    )
    for trace_id, instance_id, timestamp_ns, input_token_len, blocks, hit_rates in rows:
        yield {
            "trace_id": trace_id,
            "instance_id": instance_id,
            "timestamp_ns": timestamp_ns,
            "input_token_len": input_token_len,
            "hit_blocks": blocks,
            "hit_rates": hit_rates,
        }


def _add(totals: dict[str, SlotTotals], batch: FactBatch, hit_blocks: Int64Array, slots: _Slots) -> None:
    ceilings = HitCurveProjector.project_infinite_batch(batch.hit_curves)
    lengths = batch.input_token_lens.tolist()
    keys = list(zip(batch.instance_ids, batch.block_size_tokens.tolist(), strict=True))
    for (instance_id, block_size), group in groupby(sorted(range(len(keys)), key=keys.__getitem__), keys.__getitem__):
        rows = list(group)
        totals.setdefault(instance_id, SlotTotals(slots.capacity_gb)).add(
            requests=len(rows),
            input_tokens=sum(lengths[row] for row in rows),
            # Python's integers: a sum of facts that are valid each may pass 64 bits.
            hit_blocks=[sum(slot) for slot in hit_blocks[rows].T.tolist()],
            ceiling_blocks=sum(ceilings[rows].tolist()),
            block_size_tokens=block_size,
        )


def _line(row: dict[str, Any]) -> bytes:
    return (json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
