"""One instance's way from requests to facts: the same for a stream's lane and an offline replay."""

from __future__ import annotations

import numpy as np

from litehit.core import LiteHit
from litehit.errors import PromptTooLong
from litehit.facts import FactBatch
from litehit.prepared import Prepared
from litehit.preprocess import denominator
from litehit.registry import InstanceConfig
from litehit.request import MAX_INPUT_TOKENS, RequestBatch


class InstanceEngine:
    """The core of one instance, and how its requests are prepared for it.

    Attributes:
        config: how the instance is analysed.
        core: its LRU state.
    """

    def __init__(self, config: InstanceConfig, core: LiteHit | None = None) -> None:
        self.config = config
        self.core = core if core is not None else LiteHit(config.ttl_ns)

    def check(self, key_count: int, input_token_len: int) -> None:
        """Check one request's length before it joins a batch.

        Raises:
            LengthMismatch: the number of keys is not the number of full trace blocks in the stated length.
            PromptTooLong: it has more than `MAX_INPUT_TOKENS`.
        """
        tokens = denominator(key_count, input_token_len, self.config.trace_block_size_tokens)
        if tokens > MAX_INPUT_TOKENS:
            raise PromptTooLong(tokens, MAX_INPUT_TOKENS)

    def process(self, requests: RequestBatch) -> FactBatch:
        """Turn requests into facts, in order, and commit their blocks.

        Raises:
            LengthMismatch: a request fails `check`; nothing is processed.
            TooManyBlocks: see `LiteHit.process_batch`.
        """
        return self.process_prepared(Prepared(requests))

    def process_prepared(self, prepared: Prepared) -> FactBatch:
        """`process` for requests that other engines are given too."""
        config, requests = self.config, prepared.requests
        normalized = prepared.normalized(config)
        count = len(requests)
        return FactBatch(
            requests.trace_ids,
            [config.instance_id] * count,
            requests.timestamps_ns,
            normalized.input_token_lens,
            np.full(count, config.block_size_tokens, np.int64),
            np.full(count, config.block_bytes, np.int64),
            self.core.process_batch(normalized.keys, normalized.offsets, requests.timestamps_ns),
        )


def warm_up() -> None:
    """Compile what instances are analysed with, or load it from the cache: seconds that no request should wait."""
    config = InstanceConfig("", "", 2, 1, 1, True, 1, ())
    engine = InstanceEngine(config, LiteHit(config.ttl_ns, slack_positions=0))
    length, offsets = np.array([256]), np.array([0, 256])
    for first in range(0, 4096, 256):  # the core and its table grow, then the first half expires and it compacts
        engine.process(RequestBatch([""], np.array([first // 2048]), length, -np.arange(first, first + 256), offsets))
    engine.core.advance_time(2)
    LiteHit.from_state(engine.core.state())
    two = RequestBatch(["", ""], np.array([2, 2]), np.array([0, 0]), length, np.array([0, 0, 1]))
    engine.process(two.select(np.array([1, 0]))).to_json()
