"""All calls at full speed while facts arrive, segments roll and are merged: each answer is right for what it names."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from litehit.curves import FlatCurves
from litehit.facts import FactBatch
from litehit.projector import HitCurveProjector
from service.api.address import Address
from service.api.server import ApiServer
from service.archive.segment import ChainKey
from tests.api_archive import ApiArchive

CHAINS = [ChainKey("facts", "g", 0), ChainKey("facts", "g", 1)]
FACTS, BATCH, SEGMENT, MERGE, STAGE = 2400, 20, 200, 800, 400
CAPACITIES = [0, 20, 300]  # blocks of a GB


def history(seed: int) -> FactBatch:
    """One request a nanosecond, of two instances."""
    random = np.random.default_rng(seed)
    curves = [
        tuple((int(start), 5) for start in np.cumsum(random.integers(6, 60, random.integers(0, 5))))
        for _ in range(FACTS)
    ]
    return FactBatch(
        [f"{seed}-{place}" for place in range(FACTS)],
        [f"i{one}" for one in random.integers(0, 2, FACTS)],
        np.arange(FACTS),
        random.integers(100, 1000, FACTS),
        np.ones(FACTS, np.int64),
        np.full(FACTS, 2**30),
        FlatCurves.from_curves(curves),
    )


class Truth:
    """What is right for the first facts of each chain."""

    def __init__(self, histories: list[FactBatch]) -> None:
        self.histories = histories
        self._tokens = [np.concatenate([[0], np.cumsum(facts.input_token_lens)]) for facts in histories]

    def counts(self, offsets: tuple[int, ...]) -> tuple[int, int]:
        tokens = [of_chain[offset] for of_chain, offset in zip(self._tokens, offsets, strict=True)]
        return sum(offsets), int(sum(tokens))

    def hits(self, offsets: tuple[int, ...], capacity_blocks: int) -> int:
        return sum(
            int(HitCurveProjector.project_blocks_batch(facts.hit_curves, capacity_blocks)[:offset].sum())
            for facts, offset in zip(self.histories, offsets, strict=True)
        )


def offsets_of(as_of: list[Mapping[str, Any]]) -> tuple[int, ...]:
    assert all(one["missing"] == [] and one["start_offset"] == 0 for one in as_of)
    reached = {one["partition"]: one["next_offset"] for one in as_of}
    return tuple(reached.get(chain.partition, 0) for chain in CHAINS)


class Reader(threading.Thread):
    """Asks each call in turn, over and over, and checks what it is told."""

    def __init__(self, url: str, truth: Truth, rounds: threading.Semaphore) -> None:
        super().__init__()
        self._url = url
        self._truth = truth
        self._rounds = rounds
        self.ending = threading.Event()
        self.instants: set[tuple[int, ...]] = set()
        self.lines: list[bytes] = []
        self._cursor: str | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self._url, timeout=60) as client:
                while not self.ending.is_set():
                    self._round(client)
                    self._rounds.release()
                self._facts(client)
        except BaseException as failure:
            self.failure = failure
            self._rounds.release(100)  # nobody waits for a reader that ended

    def _round(self, client: httpx.Client) -> None:
        checks: list[tuple[str, list[tuple[str, Any]], Callable[[Any, tuple[int, ...]], None]]] = [
            ("/query", [("capacity_gb", one) for one in CAPACITIES], self._query),
            ("/curve", [("points", 12)], self._curve),
            ("/curve", [], self._curve),
            ("/capacity", [("of_ceiling", ".9")], self._capacity),
            ("/instances", [], self._instances),
        ]
        for path, asked, check in checks:
            answer = self._get(client, path, asked).json()
            offsets = offsets_of(answer["as_of"])
            self.instants.add(offsets)
            check(answer, offsets)
        self._requests(client)
        self._facts(client)

    def _get(self, client: httpx.Client, path: str, asked: list[tuple[str, Any]]) -> httpx.Response:
        response = client.get(path, params=asked)
        assert response.status_code == 200, (path, asked, response.text)
        return response

    def _query(self, answer: Any, offsets: tuple[int, ...]) -> None:
        total = answer["total"]
        assert (total["requests"], total["total_input_tokens"]) == self._truth.counts(offsets)
        assert total["total_hit_blocks"] == [self._truth.hits(offsets, one) for one in CAPACITIES]

    def _curve(self, answer: Any, offsets: tuple[int, ...]) -> None:
        total = answer["total"]
        assert (total["requests"], total["total_input_tokens"]) == self._truth.counts(offsets)
        assert total["ceiling"]["hit_blocks"] == self._truth.hits(offsets, -1)
        for place in range(0, len(total["capacity_blocks"]), 7):
            assert total["hit_blocks"][place] == self._truth.hits(offsets, total["capacity_blocks"][place])

    def _capacity(self, answer: Any, offsets: tuple[int, ...]) -> None:
        (found,) = answer["total"]["capacities"]
        wanted = 0.9 * self._truth.hits(offsets, -1)
        assert found["hit_blocks"] == self._truth.hits(offsets, found["capacity_blocks"]) >= wanted
        assert not found["capacity_blocks"] or self._truth.hits(offsets, found["capacity_blocks"] - 1) < wanted

    def _instances(self, answer: Any, offsets: tuple[int, ...]) -> None:
        ceilings = [one["summary"]["ceiling"]["hit_blocks"] for one in answer["instances"]]
        assert sum(ceilings) == self._truth.hits(offsets, -1)

    def _requests(self, client: httpx.Client) -> None:
        response = self._get(client, "/query/requests", [("capacity_gb", 20)])
        ((reached,),) = (topic.values() for topic in json.loads(response.headers["litehit-as-of"]).values())
        offsets = tuple(reached.get(str(chain.partition), [0, 0])[1] for chain in CHAINS)
        lines = response.text.splitlines()
        total = json.loads(lines[-1])
        assert (total["requests"], total["total_input_tokens"]) == self._truth.counts(offsets)
        assert total["total_hit_blocks"] == [self._truth.hits(offsets, 20)]
        ids = [json.loads(line)["trace_id"] for line in lines[: sum(offsets)]]
        assert ids == [
            one for facts, end in zip(self._truth.histories, offsets, strict=True) for one in facts.trace_ids[:end]
        ]

    def _facts(self, client: httpx.Client) -> None:
        """Read on to the end."""
        while True:
            cursor = [] if self._cursor is None else [("cursor", self._cursor)]
            response = self._get(client, "/facts", [("limit", 500), *cursor])
            self.lines += response.content.splitlines()
            self._cursor = response.headers["litehit-cursor"]
            if "link" not in response.headers:
                return


def write(archive: ApiArchive, truth: Truth, let_catch_up: Callable[[], None]) -> None:
    """Facts arrive; segments roll, are merged and followed."""
    for end in range(2 * BATCH, FACTS + 1, BATCH):
        for chain, facts in zip(CHAINS, truth.histories, strict=True):
            archive.append_rows(chain, facts.select(np.arange(end - BATCH, end)))
            if end % SEGMENT == 0:
                archive.publish(chain)
            if end % MERGE == 0:
                archive.merge(chain)
        if end % STAGE == 0:
            let_catch_up()
        if end % (2 * STAGE) == 0:
            archive.follow()


def test_every_answer_of_every_call_is_right_for_what_it_names(tmp_path: Path) -> None:
    archive = ApiArchive(tmp_path)
    truth = Truth([history(seed) for seed in range(len(CHAINS))])
    for chain, facts in zip(CHAINS, truth.histories, strict=True):
        archive.append_rows(chain, facts.select(np.arange(BATCH)))
    server, stop = ApiServer(archive.app, Address("127.0.0.1", 0)), threading.Event()
    serving = threading.Thread(target=server.serve, args=(stop,))
    serving.start()
    rounds = threading.Semaphore(0)
    readers = [Reader(server.url, truth, rounds) for _ in range(2)]
    for reader in readers:
        reader.start()

    def let_catch_up() -> None:
        while rounds.acquire(blocking=False):
            pass
        assert [reader.failure for reader in readers] == [None] * len(readers)
        # As many rounds as there are readers may have begun before.
        for _ in range(len(readers) + 1):
            assert rounds.acquire(timeout=120)

    try:
        write(archive, truth, let_catch_up)
    finally:
        for reader in readers:
            reader.ending.set()
        for reader in readers:
            reader.join()
        stop.set()
        serving.join()
    assert [reader.failure for reader in readers] == [None] * len(readers)
    stages = {(end, end) for end in range(STAGE, FACTS + 1, STAGE)}
    assert stages <= {instant for reader in readers for instant in reader.instants}
    # Each reader was given each fact once, in the order of its chain.
    for reader in readers:
        given = [json.loads(line)["trace_id"] for line in reader.lines]
        assert len(given) == FACTS * len(CHAINS)
        for seed, facts in enumerate(truth.histories):
            assert [one for one in given if one.startswith(f"{seed}-")] == list(facts.trace_ids)
