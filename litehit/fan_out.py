"""The engines that the same requests go to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.errors import InvalidRequest
from litehit.instance import InstanceEngine
from litehit.request import MAX_INPUT_TOKENS, Request
from litehit.window_requests import NOT_STATED, WindowRequests


@dataclass(frozen=True, slots=True, eq=False)
class EngineGroup:
    """Engines of one trace block size: what is checked for one of them is checked for all.

    Attributes:
        engines: in the order of their facts.
        places: of each, its place among all engines that a request goes to.
    """

    engines: tuple[InstanceEngine, ...]
    places: tuple[int, ...]

    @property
    def trace_block_size_tokens(self) -> int:
        """That of all of them."""
        return self.engines[0].config.trace_block_size_tokens

    def admit(self, request: Request) -> Request:
        """The request with keys of full blocks only, if every engine will take it.

        Raises:
            InvalidRequest: its length or its block size is not as registered.
        """
        engine = self.engines[0]
        config = engine.config
        try:
            admitted = request.at_block(config.trace_block_size_tokens, config.instance_id)
            engine.check(len(admitted.block_keys), admitted.input_token_len)
        except InvalidRequest as error:
            if config.instance_id != request.instance_id:
                error.args = (f"{error}; so it is for {config.instance_id!r}, which the request goes to",)
            raise
        return admitted

    def takes_as_they_are(self, requests: WindowRequests) -> bool:
        """Whether `admit` surely gives back each request as it is; if not, it has to tell."""
        return bool(taken_as_they_are(requests, self.trace_block_size_tokens).all())


def taken_as_they_are(requests: WindowRequests, trace_blocks: int | Int64Array) -> NDArray[np.bool_]:
    """Which of R requests `EngineGroup.admit` surely gives back as they are: bool[R].

    Args:
        requests: the requests.
        trace_blocks: the trace block size of the engines, in tokens; or int64[R], of those of each request.
    """
    stated, lengths = requests.stated_blocks, requests.columns.input_token_lens
    counts = np.diff(requests.columns.offsets)
    return np.asarray(
        ((stated == NOT_STATED) | (stated == trace_blocks))
        & ~requests.rounded_up
        & ((lengths <= 0) | (counts == lengths // trace_blocks))
        & (lengths <= MAX_INPUT_TOKENS)
        & (counts <= MAX_INPUT_TOKENS // trace_blocks)
    )


class FanOut:
    """The engines that the same requests go to, all or none.

    Args:
        engines: in the order of their facts.

    Attributes:
        groups: the engines by trace block size; most often one group.
        size: number of engines.
    """

    def __init__(self, engines: Iterable[InstanceEngine]) -> None:
        by_block: dict[int, list[tuple[int, InstanceEngine]]] = {}
        self.size = 0
        for place, engine in enumerate(engines):
            by_block.setdefault(engine.config.trace_block_size_tokens, []).append((place, engine))
            self.size += 1
        self.groups = tuple(
            EngineGroup(tuple(engine for _, engine in listed), tuple(place for place, _ in listed))
            for listed in by_block.values()
        )

    def admit(self, request: Request) -> tuple[Request, ...]:
        """The request as each group takes it.

        Raises:
            InvalidRequest: one of them does not, so that none must be given it; the sentence names the instance.
        """
        return tuple(group.admit(request) for group in self.groups)
