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

MAX_CAPACITIES = 1000


@dataclass(frozen=True, slots=True)
class _Slots:
    """K capacities, as asked and in bytes."""

    capacity_gb: tuple[float, ...]
    capacity_bytes: tuple[int, ...]


def query(facts: Iterable[FactBatch], capacity_gb: Sequence[float], sink: BinaryIO) -> SlotTotals:
    """Write one line a request, then one summary an instance by instance_id, then the total.

    Args:
        facts: batches of facts, in any grouping; read once.
        capacity_gb: the slots, in binary GB; order and duplicates are kept, negative = infinite.
        sink: where the lines go.

    Returns:
        The total.

    Raises:
        CapacityError: a capacity is no finite number.
        OptionError: there is no capacity, or more than `MAX_CAPACITIES`.
        FactsError: a row of the facts is malformed; what was written by then must not be used.
    """
    if not 1 <= len(capacity_gb) <= MAX_CAPACITIES:
        raise OptionError(f"{len(capacity_gb)} capacities were given; give 1 to {MAX_CAPACITIES}")
    slots = _Slots(tuple(capacity_gb), tuple(map(HitCurveProjector.capacity_bytes, capacity_gb)))
    totals: dict[str, SlotTotals] = {}
    for batch in facts:
        hit_blocks = _project(batch, slots.capacity_bytes)
        sink.writelines(map(_line, _request_rows(batch, hit_blocks)))
        _add(totals, batch, hit_blocks, slots)
    everything = SlotTotals(slots.capacity_gb)
    for instance_id in sorted(totals):
        sink.write(_line({"summary": "instance", "instance_id": instance_id, **totals[instance_id].summary()}))
        everything.merge(totals[instance_id])
    sink.write(_line({"summary": "total", **everything.summary()}))
    return everything


def _project(batch: FactBatch, capacity_bytes: Sequence[int]) -> Int64Array:
    """Hit blocks of R facts at K capacities: int64[R, K]."""
    hits = np.empty((len(batch), len(capacity_bytes)), np.int64)
    for block_bytes in np.unique(batch.block_bytes).tolist():
        rows = np.flatnonzero(batch.block_bytes == block_bytes)
        curves = batch.hit_curves if len(rows) == len(batch) else batch.hit_curves.select(rows)
        for slot, capacity in enumerate(capacity_bytes):
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
