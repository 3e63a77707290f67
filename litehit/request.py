"""Requests as the engine takes them, one or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litehit.ascii_texts import texts_at, texts_joined
from litehit.curves import Int64Array
from litehit.errors import OptionError, TraceBlockMismatch
from litehit.key_columns import gather_keys
from litehit.rounding import keys_of_full_blocks

MAX_INPUT_TOKENS = 2**40
"""Of one request. No prompt comes near it, and sums over millions of such requests stay within 64 bits."""


def check_instance_option(instance_id: str) -> None:
    """Check an instance id that was given as an option, so that records and files can carry it.

    Raises:
        OptionError: it is empty, or no Unicode text.
    """
    # A command line hands on bytes that are no UTF-8 as lone surrogates.
    if not instance_id or any("\ud800" <= character <= "\udfff" for character in instance_id):
        raise OptionError(f"instance {instance_id!r} is empty or no UTF-8; give an instance's id")


class Request(NamedTuple):
    """One request as a trace gives it, before preprocessing.

    Attributes:
        instance_id: the instance it was sent to.
        trace_id: the producer's name for it; may be empty.
        timestamp_ns: its time in nanoseconds.
        block_keys: int64[m], one key for each full trace block.
        input_token_len: prompt length in tokens; <= 0 where the trace does not say.
        trace_block_size_tokens: tokens of one of its blocks; None where the trace does not say.
        keys_rounded_up: the last key may be that of a partial block; only the registered block size tells.
    """

    instance_id: str
    trace_id: str
    timestamp_ns: int
    block_keys: Int64Array
    input_token_len: int
    trace_block_size_tokens: int | None = None
    keys_rounded_up: bool = False

    def at_block(self, registered: int, instance_id: str | None = None) -> Request:
        """The request with keys of full blocks only, given the trace block size of an instance.

        Args:
            registered: tokens of one trace block.
            instance_id: whose that is, for the error; None: the instance that the request names.

        Raises:
            TraceBlockMismatch: the trace states another.
            RoundedUpMismatch: there is not one key for each block, a partial last one included.
        """
        stated = self.trace_block_size_tokens
        if stated is not None and stated != registered:
            raise TraceBlockMismatch(self.instance_id if instance_id is None else instance_id, stated, registered)
        if not self.keys_rounded_up:
            return self
        keys = self.block_keys
        # Without a length each key counts as a full block's, as SPEC section 3 derives it.
        if self.input_token_len > 0:
            keys = keys_of_full_blocks(keys, self.input_token_len, registered)
        return self._replace(block_keys=keys, keys_rounded_up=False)


@dataclass(frozen=True, slots=True)
class RequestBatch:
    """R requests in columns, N keys in all; those that an engine is given are of one instance.

    Attributes:
        trace_ids: R strings.
        timestamps_ns: int64[R], nanoseconds.
        input_token_lens: int64[R], tokens; <= 0 where the trace does not say.
        keys: int64[N].
        offsets: int64[R + 1]; request i has the keys `offsets[i]:offsets[i + 1]`.
    """

    trace_ids: Sequence[str]
    timestamps_ns: Int64Array
    input_token_lens: Int64Array
    keys: Int64Array
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.trace_ids)

    @classmethod
    def from_requests(cls, requests: Sequence[Request]) -> RequestBatch:
        """Turn requests into columns."""
        count = len(requests)
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum([len(request.block_keys) for request in requests], out=offsets[1:])
        return cls(
            [request.trace_id for request in requests],
            np.fromiter((request.timestamp_ns for request in requests), np.int64, count),
            np.fromiter((request.input_token_len for request in requests), np.int64, count),
            np.concatenate([request.block_keys for request in requests]) if count else np.empty(0, np.int64),
            offsets,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[RequestBatch]) -> RequestBatch:
        """Append batches, at least one, in the order given."""
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return cls(
            texts_joined([part.trace_ids for part in parts]),
            np.concatenate([part.timestamps_ns for part in parts]),
            np.concatenate([part.input_token_lens for part in parts]),
            np.concatenate([part.keys for part in parts]),
            offsets,
        )

    def __getitem__(self, rows: slice) -> RequestBatch:
        """The requests of a slice with step 1; their keys are shared."""
        first, end, _ = rows.indices(len(self))
        offsets = self.offsets[first : end + 1]
        return RequestBatch(
            self.trace_ids[first:end],
            self.timestamps_ns[first:end],
            self.input_token_lens[first:end],
            self.keys[offsets[0] : offsets[-1]],
            offsets - offsets[0],
        )

    def select(self, rows: Int64Array) -> RequestBatch:
        """The requests of the given rows, in that order."""
        keys, offsets = gather_keys(self.keys, self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows])
        return RequestBatch(
            texts_at(self.trace_ids, rows),
            self.timestamps_ns[rows],
            self.input_token_lens[rows],
            keys,
            offsets,
        )
