"""The generator's compiled half: sessions as paths in a tree of texts, and the keys along a path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.jit import kernel


class Texts(NamedTuple):
    """T texts at most: each continues its parent from a block on.

    Attributes:
        parents: int64[T]; -1 for a system prompt.
        first_blocks: int64[T], depth of its first own block, in blocks.
    """

    parents: Int64Array
    first_blocks: Int64Array

    @classmethod
    def room(cls, count: int) -> Texts:
        """For so many."""
        return cls(np.full(count, -1, np.int64), np.zeros(count, np.int64))

    def first(self, count: int) -> Texts:
        """So many of them."""
        return Texts(self.parents[:count], self.first_blocks[:count])


class Prompts(NamedTuple):
    """R requests in order of session.

    Attributes:
        texts: int64[R], the text its prompt ends in.
        tokens: int64[R], length of the prompt.
        times: int64[R], nanoseconds since the start.
        instances: int32[R].
    """

    texts: Int64Array
    tokens: Int64Array
    times: Int64Array
    instances: NDArray[np.int32]

    @classmethod
    def room(cls, count: int) -> Prompts:
        """For so many."""
        return cls(
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
        )


@kernel(inline="always")
def _mix(z):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    # SplitMix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): a bijection.
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@kernel()
def _uniform(state: NDArray[np.uint64]) -> float:
    state[0] += uint64(0x9E3779B97F4A7C15)
    return float((_mix(state[0]) >> uint64(11)) * (1.0 / 9007199254740992.0))


@kernel()
def _exponential(state: NDArray[np.uint64], mean: float) -> int:
    return int(-np.log(1.0 - _uniform(state)) * mean)


@kernel()
def _open_text(parents: Int64Array, first_blocks: Int64Array, text: int, parent: int, first_block: int) -> int:
    parents[text] = parent
    first_blocks[text] = first_block
    return text


@kernel()
def _ask(prompts: Prompts, made: int, text: int, tokens: int, time: int, instance: np.int32) -> int:
    prompts.texts[made] = text
    prompts.tokens[made] = tokens
    prompts.times[made] = time
    prompts.instances[made] = instance
    return made + 1


@kernel(allocates=True)
def simulate(
    count: int,
    seed: np.uint64,
    instance_count: int,
    prompt_cdf: NDArray[np.float64],
    block: int,
    prompt_tokens: int,
    mean_turns: float,
    turn_tokens: float,
    max_tokens: int,
    regenerate: float,
    branch: float,
    sub_agent: float,
    session_gap_ns: float,
    think_ns: float,
    made_texts: Texts,
    asked: Prompts,
) -> int:
    """Run sessions one after another until `count` requests are made; see `WorkloadSpec` for what makes them.

    `made_texts` gets the texts: it has room for two a request and those of the system prompts; `asked` the requests.

    Returns:
        Number of texts.
    """
    parents, first_blocks = made_texts
    state = np.full(1, _mix(seed), np.uint64)
    shared = len(prompt_cdf)
    texts = shared
    floors = np.empty(shared, np.int64)
    for i in range(shared):
        floors[i] = int(min(max_tokens, prompt_tokens // 2 + _exponential(state, prompt_tokens / 2)))
    made = 0
    session_start = 0
    while made < count:
        session_start += _exponential(state, session_gap_ns)
        instance = np.int32(_uniform(state) * instance_count)
        prompt = min(int(np.searchsorted(prompt_cdf, _uniform(state), side="right")), shared - 1)
        floor = floors[prompt]
        text = _open_text(parents, first_blocks, texts, prompt, floor // block)
        texts += 1
        now = session_start
        # However long its system prompt, a session makes a request.
        length = min(max_tokens, floor + 1 + _exponential(state, turn_tokens))
        while made < count and length <= max_tokens:
            made = _ask(asked, made, text, length, now, instance)
            now += 1 + _exponential(state, think_ns)
            draw = _uniform(state)
            if draw < regenerate:
                if made < count:
                    made = _ask(asked, made, text, length, now, instance)
                    now += 1 + _exponential(state, think_ns)
                text = _open_text(parents, first_blocks, texts, text, length // block)
                texts += 1
            elif draw < regenerate + branch:
                length = floor + int(_uniform(state) * (length - floor))
                text = _open_text(parents, first_blocks, texts, text, length // block)
                texts += 1
            elif draw < regenerate + branch + sub_agent:
                agent_length = floor + (length - floor) // 2
                agent = _open_text(parents, first_blocks, texts, text, agent_length // block)
                texts += 1
                for _ in range(1 + int(_uniform(state) * 4)):
                    agent_length += 1 + _exponential(state, turn_tokens)
                    if made == count or agent_length > max_tokens:
                        break
                    made = _ask(asked, made, agent, agent_length, now, instance)
                    # A tool answers soon where a person thinks.
                    now += 1 + _exponential(state, think_ns / 16)
            if _uniform(state) * mean_turns < 1.0:
                break
            length += 1 + _exponential(state, turn_tokens)
    return texts


def keys_of(texts: Texts, ends: Int64Array, offsets: Int64Array, seed: np.uint64) -> Int64Array:
    """The keys of R prompts: int64[offsets[R]], each prompt walked from its last text back to its system prompt."""
    keys = np.empty(offsets[-1], np.int64)
    _fill_keys(texts.parents, texts.first_blocks, ends, offsets, seed, keys)
    return keys


@kernel()
def _fill_keys(
    parents: Int64Array,
    first_blocks: Int64Array,
    ends: Int64Array,
    offsets: Int64Array,
    seed: np.uint64,
    keys: Int64Array,
) -> None:
    origin = _mix(uint64(seed) + uint64(0x9E3779B97F4A7C15))
    for request in range(len(ends)):
        text = ends[request]
        stop = offsets[request + 1]
        while text >= 0:
            # A later branch may leave its parent before the parent's own first block: then nothing of it is used.
            start = min(stop, offsets[request] + first_blocks[text])
            # (text, position in it) is one 64-bit number, used for one prefix alone; two bijections keep it so.
            name = (uint64(text) << uint64(32)) - uint64(offsets[request] + first_blocks[text])
            for i in range(start, stop):
                keys[i] = np.int64(_mix(_mix(name + uint64(i)) + origin))
            stop = start
            text = parents[text]
