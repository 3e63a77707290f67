"""Each thread has room of its own, which grows and is used again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from litehit.scratch import Scratch


def test_room_is_used_again_until_more_is_asked_for() -> None:
    scratch = Scratch(np.int64)
    first = scratch.room(10)
    assert first.dtype == np.int64
    assert len(first) >= 10
    assert scratch.room(3) is first
    assert len(scratch.room(11)) >= 11


def test_threads_share_none() -> None:
    scratch = Scratch(np.uint8)
    own = scratch.room(10)
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(scratch.room, 10).result()
    assert theirs.dtype == own.dtype
    assert not np.shares_memory(own, theirs)
