"""Readers at full speed while facts arrive and segments roll: every answer is right for the `as_of` it names."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import numpy as np
from prometheus_client import CollectorRegistry

from litehit.curves import FlatCurves
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.server import ApiServer
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo
from tests.api_doubles import Segments

CHAINS = [ChainKey("facts", "g", 0), ChainKey("facts", "g", 1)]
FACTS, BATCH, SEGMENT = 6000, 25, 1000
CAPACITIES = [0, 20, 300]  # blocks of a GB
WINDOW = (2000, 4500)


def history(seed: int) -> FactBatch:
    """One request a nanosecond, of four instances."""
    random = np.random.default_rng(seed)
    curves = [
        tuple((int(start), 5) for start in np.cumsum(random.integers(6, 60, random.integers(0, 5))))
        for _ in range(FACTS)
    ]
    return FactBatch(
        [""] * FACTS,
        [f"i{one}" for one in random.integers(0, 4, FACTS)],
        np.arange(FACTS),
        random.integers(100, 1000, FACTS),
        np.ones(FACTS, np.int64),
        np.full(FACTS, 2**30),
        FlatCurves.from_curves(curves),
    )


def sums_before(facts: FactBatch, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Row n: requests, tokens and hits at each capacity of the chosen among the first n facts."""
    columns = [np.ones(FACTS, np.int64), facts.input_token_lens]
    columns += [HitCurveProjector.project_blocks_batch(facts.hit_curves, capacity) for capacity in CAPACITIES]
    return np.vstack([np.zeros(len(columns), np.int64), np.cumsum(np.stack(columns, 1) * chosen[:, None], 0)])


def test_every_answer_is_right_for_the_as_of_it_names() -> None:
    histories = [history(seed) for seed in range(len(CHAINS))]
    times = np.arange(FACTS)
    everything = [sums_before(facts, np.ones(FACTS, np.bool_)) for facts in histories]
    inside = [sums_before(facts, (times >= WINDOW[0]) & (times < WINDOW[1])) for facts in histories]
    segments = Segments()
    index = FactIndex(segments, window_rows=10**6, window_calls=2, window_queue=100)
    index.loaded()
    server, stop = ApiServer(create_app(index, registry=CollectorRegistry()), "127.0.0.1", 0), threading.Event()
    serving = threading.Thread(target=server.serve, args=(stop,))
    serving.start()
    written = threading.Event()
    wrong: list[str] = []
    instants: set[tuple[int, ...]] = set()

    def read() -> None:
        asked: list[tuple[str, int]] = [("capacity_gb", capacity) for capacity in CAPACITIES]
        with httpx.Client(base_url=server.url, timeout=60) as client:
            last_round = False
            while not last_round and not wrong:
                last_round = written.is_set()
                for sums, window in ((everything, []), (inside, [("from", WINDOW[0]), ("to", WINDOW[1])])):
                    response = client.get("/query", params=[*asked, *window])
                    if response.status_code != 200:
                        wrong.append(response.text)
                        return
                    answer = response.json()
                    reached = {one["partition"]: one["next_offset"] for one in answer["as_of"]}
                    expected = sum(sums[chain][offset] for chain, offset in reached.items())
                    total = answer["total"]
                    found = [total["requests"], total["total_input_tokens"], *total["total_hit_blocks"]]
                    if reached and found != expected.tolist():
                        wrong.append(f"{window} {reached}: {found}, not {expected.tolist()}")
                    instants.add(tuple(sorted(reached.values())))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for first in range(0, FACTS, BATCH):
            for chain, facts in zip(CHAINS, histories, strict=True):
                append(index, chain, facts, first)
                # Partition 1 publishes late, so that a segment ends inside its tail.
                end = first + BATCH * (1 - chain.partition)
                if end and end % SEGMENT == 0:
                    publish(index, segments, chain, facts, end)
        publish(index, segments, CHAINS[1], histories[1], FACTS)
    finally:
        written.set()
        for reader in readers:
            reader.join()
        stop.set()
        serving.join()
    assert wrong == []
    assert len(instants) > 10
    assert (FACTS, FACTS) in instants
    assert index.size().segments == 2 * FACTS // SEGMENT


def append(index: FactIndex, chain: ChainKey, facts: FactBatch, first: int) -> None:
    offsets = np.arange(first, first + BATCH)
    index.appended(chain, ArchivedFacts(facts.select(offsets), offsets, offsets))


def publish(index: FactIndex, segments: Segments, chain: ChainKey, facts: FactBatch, end: int) -> None:
    rows = np.arange(end - SEGMENT, end)
    info = SegmentInfo(chain, end - SEGMENT, end, SEGMENT, end - SEGMENT, end - 1)
    segments.rows[info] = ArchivedFacts(facts.select(rows), rows, rows)
    index.published(info)
