"""Readers at full speed while facts arrive, segments roll and merge: every answer is right for the `as_of` it names."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TypeAlias

import httpx
import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from litehit.curves import FlatCurves, Int64Array
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from service.api.address import Address
from service.api.app import create_app
from service.api.index import FactIndex
from service.api.server import ApiServer
from service.archive.archived_facts import ArchivedFacts
from service.archive.segment import ChainKey, SegmentInfo
from tests.api_doubles import Segments

CHAINS = [ChainKey("facts", "g", 0), ChainKey("facts", "g", 1)]
FACTS, BATCH, SEGMENT, MERGED, STAGE = 6000, 25, 1000, 3000, 500
READERS = 3

Sums: TypeAlias = Int64Array
"""Row n: sums over the first n facts of a chain."""
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


def sums_before(facts: FactBatch, chosen: NDArray[np.bool_]) -> Sums:
    """Row n: requests, tokens and hits at each capacity of the chosen among the first n facts."""
    columns = [np.ones(FACTS, np.int64), facts.input_token_lens]
    columns += [HitCurveProjector.project_blocks_batch(facts.hit_curves, capacity) for capacity in CAPACITIES]
    return np.vstack([np.zeros(len(columns), np.int64), np.cumsum(np.stack(columns, 1) * chosen[:, None], 0)])


class Readers:
    """Threads that ask as fast as they can and compare each answer with the sums before the offsets it names."""

    def __init__(self, url: str, questions: Sequence[tuple[Sequence[tuple[str, int]], Sequence[Sums]]]) -> None:
        self._url = url
        self._questions = questions
        self._ending = threading.Event()
        self._answered = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._read) for _ in range(READERS)]
        self.wrong: list[str] = []
        self.instants: set[tuple[int, ...]] = set()
        for thread in self._threads:
            thread.start()

    def let_catch_up(self) -> None:
        """Return after an answer that was asked for after this call."""
        while self._answered.acquire(blocking=False):
            pass
        # As many answers as there are readers may be of calls that were under way.
        assert all(self._answered.acquire(timeout=60) for _ in range(READERS + 1)), self.wrong

    def end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as client:
            while not self._ending.is_set() and not self.wrong:
                for parameters, sums in self._questions:
                    self._ask(client, parameters, sums)
        self._answered.release(READERS + 1)  # nobody waits for a reader that ended

    def _ask(self, client: httpx.Client, parameters: Sequence[tuple[str, int]], sums: Sequence[Sums]) -> None:
        response = client.get("/query", params=list(parameters))
        if response.status_code != 200:
            self.wrong.append(response.text)
            return
        answer = response.json()
        reached = {one["partition"]: one["next_offset"] for one in answer["as_of"]}
        offsets = tuple(reached.get(chain.partition, 0) for chain in CHAINS)
        expected = sum(of_chain[offset] for of_chain, offset in zip(sums, offsets, strict=True))
        total = answer["total"]
        found = [total["requests"], total["total_input_tokens"], *total["total_hit_blocks"]]
        if found != expected.tolist():
            self.wrong.append(f"{parameters} at {offsets}: {found}, not {expected.tolist()}")
        self.instants.add(offsets)
        self._answered.release()


def test_every_answer_is_right_for_the_as_of_it_names() -> None:
    histories = [history(seed) for seed in range(len(CHAINS))]
    segments = Segments()
    index = FactIndex(segments, window_rows=10**6, window_calls=2, window_queue=100)
    index.loaded()
    merging = threading.Lock()

    def catch_up() -> None:
        with merging:  # the index hears of what is merged before it ends
            pass

    index.catches_up_by(catch_up)
    server, stop = (
        ApiServer(create_app(index, registry=CollectorRegistry()), Address("127.0.0.1", 0)),
        threading.Event(),
    )
    serving = threading.Thread(target=server.serve, args=(stop,))
    serving.start()
    capacities = [("capacity_gb", capacity) for capacity in CAPACITIES]
    times = np.arange(FACTS)
    everything = [sums_before(facts, times >= 0) for facts in histories]
    inside = [sums_before(facts, (times >= WINDOW[0]) & (times < WINDOW[1])) for facts in histories]
    window = [*capacities, ("from", WINDOW[0]), ("to", WINDOW[1])]
    readers = Readers(server.url, [(capacities, everything), (window, inside)])
    try:
        for first in range(0, FACTS, BATCH):
            for chain, facts in zip(CHAINS, histories, strict=True):
                append(index, chain, facts, first)
                # Partition 1 publishes late, so that a segment ends inside its tail.
                end = first + BATCH * (1 - chain.partition)
                if end and end % SEGMENT == 0:
                    publish(index, segments, chain, facts, end)
                    if end % MERGED == 0:
                        merge(index, segments, chain, facts, end, merging)
            if (first + BATCH) % STAGE == 0:
                readers.let_catch_up()
        publish(index, segments, CHAINS[1], histories[1], FACTS)
        readers.let_catch_up()
    finally:
        readers.end()
        stop.set()
        serving.join()
    assert readers.wrong == []
    assert readers.instants >= {(end, end) for end in range(STAGE, FACTS + 1, STAGE)}
    # Partition 1's last three were published after the last merge.
    assert index.size().segments == FACTS // MERGED + 1 + MERGED // SEGMENT


def append(index: FactIndex, chain: ChainKey, facts: FactBatch, first: int) -> None:
    offsets = np.arange(first, first + BATCH)
    index.appended(chain, ArchivedFacts(facts.select(offsets), offsets, offsets))


def publish(index: FactIndex, segments: Segments, chain: ChainKey, facts: FactBatch, end: int) -> None:
    rows = np.arange(end - SEGMENT, end)
    info = SegmentInfo(chain, end - SEGMENT, end, SEGMENT, end - SEGMENT, end - 1)
    segments.rows[info] = ArchivedFacts(facts.select(rows), rows, rows)
    index.published(info)


def merge(
    index: FactIndex, segments: Segments, chain: ChainKey, facts: FactBatch, end: int, merging: threading.Lock
) -> None:
    """Segments become one, whose rows take the place of theirs before the index hears of it."""
    rows = np.arange(end - MERGED, end)
    merged = SegmentInfo(chain, end - MERGED, end, MERGED, end - MERGED, end - 1)
    parts = [info for info in segments.rows if info.chain == chain and merged.base_offset <= info.base_offset < end]
    with merging:
        segments.rows[merged] = ArchivedFacts(facts.select(rows), rows, rows)
        for info in parts:
            del segments.rows[info]
        index.follow([merged], parts, {})
