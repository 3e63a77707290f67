"""A process that is killed amid its upkeep leaves a chain with the same facts, and its successor clears up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from service.archive.open_store import open_store
from service.archive.segment import read_table
from service.crash_points import VARIABLE, CrashPoint
from tests.chains import chain_of, names, offsets_of, put_all
from tests.cli_harness import environment

LOOK = """
import sys, threading, time
from prometheus_client import CollectorRegistry
from service.archive.open_store import open_store
from service.archive.upkeep import Upkeep
from service.metrics import UpkeepMetrics
from service.settings import Settings

settings = Settings(compact_rows=16, compact_parts=4, compact_after_seconds=0, retention_seconds=3600)
upkeep = Upkeep(settings, open_store(sys.argv[1]), UpkeepMetrics(CollectorRegistry()))
upkeep.look(threading.Event())
"""
KILLED = [
    (CrashPoint.MID_PUBLISH, passes)
    for passes in (2, 3, 4, 5, 6, 7)  # the first is the writing test of the store
] + [
    (point, passes)
    for point, each in ((CrashPoint.MID_EXPIRE, (1, 2, 3)), (CrashPoint.AFTER_MERGE, (1, 2, 3)))
    for passes in each
]
KILLED += [(CrashPoint.MID_DELETE, passes) for passes in (1, 2, 3, 7)]


def look(store: Path, **variables: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(store)], check=False, timeout=60, env=environment(**variables)
    )
    return done.returncode


@pytest.mark.parametrize(("point", "passes"), KILLED)
def test_a_killed_process_loses_nothing(tmp_path: Path, point: CrashPoint, passes: int) -> None:
    """Three segments have expired; those behind them become two."""
    store = open_store(str(tmp_path))
    infos = put_all(store, range(2, 42, 2))
    kept = offsets_of(store, infos[3:])
    old = time.time() - 7200
    for info in infos[:3]:
        os.utime(tmp_path / info.path, (old, old))

    assert look(tmp_path, **{VARIABLE: f"{point}:{passes}"}) == -signal.SIGKILL
    chain = chain_of(store)
    assert chain.faults == ()
    assert offsets_of(store, [info for info in chain.segments if info.base_offset >= 6]) == kept
    assert chain.expired_facts == sum(info.rows for info in infos[:3] if info.base_offset < chain.start_offset)

    assert look(tmp_path) == 0
    chain = chain_of(store)
    assert [(one.base_offset, one.end_offset) for one in chain.expired] == [(0, 6)]
    assert [(one.base_offset, one.end_offset) for one in chain.segments] == [
        (6, 16),
        (16, 32),
        *pairwise(range(32, 42, 2)),
    ]
    assert offsets_of(store, chain.segments) == kept
    assert (chain.faults, chain.superseded) == ((), ())
    assert names(store) == [0, 6, 16, 32, 34, 36, 38]
    assert all(read_table(store, info.path)[0] == info for info in chain.segments)
    assert not list(tmp_path.rglob(".tmp-*"))
