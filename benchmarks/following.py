"""What following a store takes of memory: a service that saw segments come, against one that starts on all of them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.http_clients import Ask, Load, answer, latencies
from benchmarks.sidecar import Sidecar, serving

_LOOK_SECONDS = 0.05
_ASK_SECONDS = 2.0


def measure_following(store: Path, asks: Sequence[Ask]) -> dict[str, float]:
    """Resident memory of both, each after the same questions.

    Args:
        store: a finished store; another beside it shares its files, and is removed again.
        asks: the questions.

    Returns:
        `following_rss_mb`, `finished_rss_mb`, and `following_rss_ratio`, the one by the other.
    """
    copy = store.with_name(f"{store.name}-followed")
    segments = sorted((store / "facts").rglob("*.parquet"), key=lambda file: (file.name, file))
    half = len(segments) // 2
    try:
        for file in segments[:half]:
            _link(file, store, copy)
        with serving(copy) as sidecar:
            before = _facts(sidecar)
            for file in segments[half:]:
                _link(file, store, copy)
                while (now := _facts(sidecar)) == before:
                    time.sleep(_LOOK_SECONDS)
                before = now
            following = _asked_mb(sidecar, asks)
        with serving(copy) as sidecar:
            if _facts(sidecar) != before:
                raise RuntimeError(f"{before} facts were followed, but {_facts(sidecar)} are there at a start")
            finished = _asked_mb(sidecar, asks)
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return {
        "following_rss_mb": following,
        "finished_rss_mb": finished,
        "following_rss_ratio": following / finished,
    }


def _link(file: Path, store: Path, copy: Path) -> None:
    place = copy / file.relative_to(store)
    place.parent.mkdir(parents=True, exist_ok=True)
    os.link(file, place)


def _facts(sidecar: Sidecar) -> int:
    requests: int = json.loads(answer(sidecar.url, "/query?capacity_gb=1"))["total"]["requests"]
    return requests


def _asked_mb(sidecar: Sidecar, asks: Sequence[Ask]) -> float:
    for ask in asks:
        latencies(sidecar.url, ask, Load(1, _ASK_SECONDS))
    return sidecar.memory_mb("VmRSS")
