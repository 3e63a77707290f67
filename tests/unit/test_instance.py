from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from litehit.errors import LengthMismatch, PromptTooLong
from litehit.instance import InstanceEngine
from litehit.registry import InstanceConfig
from litehit.request import MAX_INPUT_TOKENS, Request, RequestBatch

CONFIG = InstanceConfig(
    instance_id="chat",
    group="g",
    block_size_tokens=8,
    trace_block_size_tokens=4,
    block_bytes=1024,
    enable_prefix_hash=False,
    ttl_ns=0,
    capacity_gb=(),
)

COMPILED_LATER = """
import numpy as np
from litehit import batch_kernel, compaction, key_columns, key_table, ordered_keys, preprocess, recency
from litehit.core import LiteHit
from litehit.instance import InstanceEngine, warm_up
from litehit.registry import InstanceConfig
from litehit.request import RequestBatch

def compiled():
    modules = (batch_kernel, compaction, key_columns, key_table, ordered_keys, preprocess, recency)
    kernels = [one for module in modules for one in vars(module).values() if hasattr(one, "signatures")]
    return [len(one.signatures) for one in kernels]

warm_up()
before = compiled()
numbers = np.random.default_rng(0)
for ttl, is_chained, size in ((0, False, 1), (50, False, 2), (50, True, 1)):
    core = LiteHit(ttl, slack_positions=10)
    engine = InstanceEngine(InstanceConfig("a", "g", size, 1, 1, is_chained, ttl, ()), core)
    for first in range(0, 1200, 40):
        lengths = numbers.integers(0, 20, 40)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        keys = numbers.integers(0, 3000, offsets[-1])
        requests = RequestBatch(["t"] * 40, np.arange(first, first + 40), lengths, keys, offsets)
        engine.process(requests.select(np.arange(40)[::-1].copy()))
    core.advance_time(10**6)
    LiteHit.from_state(core.state())
assert sum(before) > 10 and compiled() == before, (before, compiled())
"""


def batch(*requests: tuple[list[int], int, int]) -> RequestBatch:
    """Requests given as keys, length and time."""
    return RequestBatch.from_requests(
        [
            Request("chat", f"r{i}", time, np.array(keys, np.int64), length)
            for i, (keys, length, time) in enumerate(requests)
        ]
    )


def test_facts_carry_their_own_time_and_denominator() -> None:
    facts = list(InstanceEngine(CONFIG).process(batch(([1, 2, 3, 4, 5], 21, 7), ([1, 2, 3, 4], 0, 3))))
    assert [fact.trace_id for fact in facts] == ["r0", "r1"]
    assert [fact.timestamp_ns for fact in facts] == [7, 3]  # the clamp moves only the TTL clock
    assert [fact.input_token_len for fact in facts] == [21, 16]
    assert [fact.hit_curve for fact in facts] == [(), ((1, 2),)]
    assert {(fact.instance_id, fact.block_size_tokens, fact.block_bytes) for fact in facts} == {("chat", 8, 1024)}


def test_a_bad_length_processes_nothing() -> None:
    instance = InstanceEngine(CONFIG)
    with pytest.raises(LengthMismatch, match="2 block keys, but input_token_len 20"):
        instance.process(batch(([1, 2], 0, 0), ([1, 2], 20, 0)))
    assert instance.core.current_unique_blocks() == 0
    with pytest.raises(LengthMismatch):
        instance.check(2, 20)
    instance.check(2, 11)


def test_a_length_that_no_prompt_has_is_refused_stated_or_derived() -> None:
    block = 2**31
    instance = InstanceEngine(replace(CONFIG, block_size_tokens=block, trace_block_size_tokens=block))
    instance.check(512, MAX_INPUT_TOKENS)
    for keys, stated in ((512, MAX_INPUT_TOKENS + 1), (513, 0)):
        with pytest.raises(PromptTooLong, match=r"more than 1,099,511,627,776; send .* registered block size"):
            instance.check(keys, stated)


def test_the_ttl_is_the_group_s() -> None:
    instance = InstanceEngine(replace(CONFIG, ttl_ns=10, block_size_tokens=4))
    facts = list(instance.process(batch(([1], 0, 0), ([1], 0, 9), ([1], 0, 19))))
    assert [fact.hit_curve for fact in facts] == [(), ((1, 1),), ()]


def test_no_request_gives_no_fact() -> None:
    assert len(InstanceEngine(CONFIG).process(batch())) == 0


def test_nothing_is_compiled_after_the_warm_up() -> None:
    subprocess.run([sys.executable, "-c", COMPILED_LATER], check=True, timeout=300)
