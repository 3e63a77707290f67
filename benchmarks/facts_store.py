"""A store of facts of many instances over many days, made with the project's own generator, engine and segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from litehit.core import LiteHit
from litehit.curves import FlatCurves, Int64Array
from litehit.workload import WorkloadSpec, generate
from service.archive.archived_facts import FACT_SCHEMA
from service.archive.open_store import open_store
from service.archive.segment import ChainKey, describe
from service.archive.segment_writer import encode

TOPIC = "litehit.facts"
GENERATION = "benchmark"
BLOCK_BYTES = 2**25
BLOCK_TOKENS = 512
DAY_NS = 86_400 * 10**9
START_NS = 1_750_000_000 * 10**9
_REQUESTS_PER_SESSION = 7.5  # about, with sub-agents
_BATCH = 100_000


@dataclass(frozen=True)
class StoreSpec:
    """What a store holds.

    Attributes:
        facts: facts in all.
        instances: instances, each with as many.
        days: days they are spread over.
        partitions: chains; instance i is in chain `i % partitions`.
        segment_rows: facts of a segment.
    """

    facts: int
    instances: int = 50
    days: int = 30
    partitions: int = 4
    segment_rows: int = 1_000_000

    @cached_property
    def names(self) -> list[str]:
        """The instances' ids."""
        return [f"model-{number:02d}" for number in range(self.instances)]


@dataclass(frozen=True, slots=True)
class _Columns:
    times_ns: Int64Array
    input_token_lens: Int64Array
    curves: FlatCurves


def make_store(url: str, spec: StoreSpec) -> None:
    """Write the store."""
    store = open_store(url)
    for partition in range(spec.partitions):
        chain = ChainKey(TOPIC, GENERATION, partition)
        for base, table in _segments(spec, range(partition, spec.instances, spec.partitions)):
            info = describe(chain, base, base + table.num_rows, table)
            store.create(info.path, encode(info, table))


def _segments(spec: StoreSpec, instances: range) -> Iterator[tuple[int, pa.Table]]:
    """Facts of some instances in order of time, as tables of a segment each, and the first offset of each."""
    columns = [_instance(spec, number) for number in instances]
    times = np.concatenate([one.times_ns for one in columns])
    tokens = np.concatenate([one.input_token_lens for one in columns])
    curves = FlatCurves.concatenate([one.curves for one in columns])
    of = np.repeat(np.arange(len(columns)), [len(one.times_ns) for one in columns])
    order = np.argsort(times, kind="stable")
    names = pa.array([spec.names[number] for number in instances])
    for base in range(0, len(order), spec.segment_rows):
        rows = order[base : base + spec.segment_rows]
        offsets = pa.array(np.arange(base, base + len(rows)))
        yield base, _table(names.take(pa.array(of[rows])), times[rows], tokens[rows], curves.select(rows), offsets)


def _instance(spec: StoreSpec, number: int) -> _Columns:
    requests = spec.facts // spec.instances
    trace = generate(
        WorkloadSpec(
            requests=requests,
            seed=number,
            instances=(spec.names[number],),
            block_size_tokens=BLOCK_TOKENS,
            sessions_per_second=requests / _REQUESTS_PER_SESSION / (spec.days * 86_400),
            start_ns=START_NS,
        )
    )
    core = LiteHit()
    parts = []
    for first in range(0, requests, _BATCH):
        offsets = trace.offsets[first : first + _BATCH + 1]
        parts.append(core.process_batch(trace.keys[offsets[0] : offsets[-1]], offsets - offsets[0]))
    # To the day, whatever the sessions came to; the generator's nanoseconds stay ragged.
    span = trace.timestamps_ns - START_NS
    times = START_NS + (span * (spec.days * DAY_NS / (int(span[-1]) + 1))).astype(np.int64)
    return _Columns(times, trace.input_token_lens, FlatCurves.concatenate(parts))


def _table(
    instance_ids: pa.Array, times: Int64Array, tokens: Int64Array, curves: FlatCurves, offsets: pa.Array
) -> pa.Table:
    count = len(times)
    segments = pa.StructArray.from_arrays(
        [pa.array(curves.starts), pa.array(curves.runs)], fields=list(FACT_SCHEMA.field("hit_curve").type.value_type)
    )
    return pa.Table.from_arrays(
        [
            pc.binary_join_element_wise("request-", offsets.cast(pa.string()), ""),
            instance_ids,
            pa.array(times),
            pa.array(tokens),
            pa.array(np.full(count, BLOCK_TOKENS)),
            pa.array(np.full(count, BLOCK_BYTES)),
            pa.ListArray.from_arrays(
                pa.array(curves.offsets.astype(np.int32)), segments, type=FACT_SCHEMA.field("hit_curve").type
            ),
            offsets,
            offsets,
        ],
        schema=FACT_SCHEMA,
    )
