"""Requests on their way to several engines: what these need alike is made once."""

from __future__ import annotations

from threading import Lock

from litehit.preprocess import NormalizedBatch, normalize_batch
from litehit.registry import InstanceConfig
from litehit.request import RequestBatch


class Prepared:
    """Requests, and their keys as each engine takes them; threads may share it.

    Args:
        requests: those that every engine is given.

    Attributes:
        requests: the same.
    """

    def __init__(self, requests: RequestBatch) -> None:
        self.requests = requests
        self._made: dict[tuple[int, int, bool], NormalizedBatch] = {}
        self._making = Lock()

    def normalized(self, config: InstanceConfig) -> NormalizedBatch:
        """The requests as an instance's core takes them.

        Raises:
            LengthMismatch: as `normalize_batch`.
        """
        with self._making:
            return self._normalized(
                config.block_size_tokens, config.trace_block_size_tokens, enable_prefix_hash=config.enable_prefix_hash
            )

    def _normalized(self, block: int, trace_block: int, *, enable_prefix_hash: bool) -> NormalizedBatch:
        settings = (block, trace_block, enable_prefix_hash)
        made = self._made.get(settings)
        if made is None:
            made = self._made[settings] = self._make(*settings)
        return made

    def _make(self, block: int, trace_block: int, enable_prefix_hash: bool) -> NormalizedBatch:
        if enable_prefix_hash and block != trace_block:
            # Keys are chained at trace granularity, which is the same for every block size.
            chained = self._normalized(trace_block, trace_block, enable_prefix_hash=True)
            keys, offsets, lengths = chained.keys, chained.offsets, chained.input_token_lens
            return normalize_batch(keys, offsets, lengths, block, False, trace_block)
        requests = self.requests
        return normalize_batch(
            requests.keys, requests.offsets, requests.input_token_lens, block, enable_prefix_hash, trace_block
        )
