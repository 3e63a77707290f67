"""The project's own trace: seeded, session-shaped, the same on every machine.

Chats grow by turns under shared system prompts; some turns are asked again, some go back and branch off, some call
sub-agents that share the chat's first blocks. Every prompt is a path in a tree of texts, and a block's key is a
bijective mix of (text, position in that text), so two keys are equal exactly if the whole prefixes are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litehit.curves import Int64Array
from litehit.errors import OptionError
from litehit.request import Request, check_instance_option
from litehit.time_units import NS_PER_S
from litehit.workload_kernels import Prompts, Texts, keys_of, simulate


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What a generated trace looks like; means are of geometric or exponential distributions.

    Attributes:
        requests: number of requests.
        seed: 0 to 2**63 - 1; the same seed gives the same trace, another seed other keys.
        instances: instance ids; a session stays on one, drawn evenly.
        block_size_tokens: tokens of one block.
        system_prompts: number of shared system prompts.
        system_prompt_tokens: mean length of a system prompt; half of it is the least.
        prompt_zipf: exponent of the prompts' popularity; 0 = even.
        mean_turns: turns of a session.
        turn_tokens: tokens that a question and its answer add.
        max_prompt_tokens: a session ends before its prompt grows beyond this.
        regenerate: share of turns that ask the same prompt again and go on from another answer.
        branch: share of turns that go back to an earlier point and go on from there.
        sub_agent: share of turns that call a sub-agent of a few turns, which keeps the chat's first half.
        sessions_per_second: sessions that start in a second, over all instances.
        think_seconds: time between two turns.
        start_ns: time before the first request, in nanoseconds.
    """

    requests: int = 10_000
    seed: int = 1
    instances: tuple[str, ...] = ("demo",)
    block_size_tokens: int = 64
    system_prompts: int = 32
    system_prompt_tokens: int = 2_000
    prompt_zipf: float = 1.0
    mean_turns: float = 5.0
    turn_tokens: float = 700.0
    max_prompt_tokens: int = 128_000
    regenerate: float = 0.05
    branch: float = 0.05
    sub_agent: float = 0.08
    sessions_per_second: float = 2.0
    think_seconds: float = 30.0
    start_ns: int = 1_750_000_000 * NS_PER_S

    def __post_init__(self) -> None:
        for name, low, high in (
            ("requests", 1, 10**9),
            ("seed", 0, 2**63 - 1),
            ("block_size_tokens", 1, 2**20),
            ("system_prompts", 1, 10**6),
            ("system_prompt_tokens", 1, 2**24),
            ("prompt_zipf", 0, 10),
            ("mean_turns", 1, 10**6),
            ("turn_tokens", 1, 2**24),
            ("max_prompt_tokens", 1, 2**24),
            ("regenerate", 0, 1),
            ("branch", 0, 1),
            ("sub_agent", 0, 1),
            ("sessions_per_second", 1e-6, 1e9),
            ("think_seconds", 0, 10**6),
            ("start_ns", 0, 2**62),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise OptionError(f"{name} {value} is out of range; give {low} to {high}")
        if not self.instances:
            raise OptionError("instances is empty; name at least one")
        for instance_id in self.instances:
            check_instance_option(instance_id)


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """R requests in order of time, N keys in all.

    Attributes:
        keys: int64[N], prefix keys.
        offsets: int64[R + 1]; request i has the keys `offsets[i]:offsets[i + 1]`.
        timestamps_ns: int64[R], ascending.
        input_token_lens: int64[R], tokens; not multiples of the block in general.
        instances: instance ids.
        instance_of: int32[R], index in `instances`.
    """

    keys: Int64Array
    offsets: Int64Array
    timestamps_ns: Int64Array
    input_token_lens: Int64Array
    instances: tuple[str, ...]
    instance_of: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.timestamps_ns)

    def requests(self) -> Iterator[Request]:
        """The requests one by one; trace ids count from `request-0`."""
        bounds = self.offsets.tolist()
        rows = zip(self.instance_of.tolist(), self.timestamps_ns.tolist(), self.input_token_lens.tolist(), strict=True)
        for i, (instance, timestamp_ns, input_token_len) in enumerate(rows):
            yield Request(
                instance_id=self.instances[instance],
                trace_id=f"request-{i}",
                timestamp_ns=timestamp_ns,
                block_keys=self.keys[bounds[i] : bounds[i + 1]],
                input_token_len=input_token_len,
            )


def generate(spec: WorkloadSpec) -> RequestColumns:
    """Make the trace of a specification. Memory: the result, and some ten integers a request beside it.

    Raises:
        OptionError: its times pass 64 bits of nanoseconds.
    """
    weights = 1.0 / np.arange(1, spec.system_prompts + 1, dtype=np.float64) ** spec.prompt_zipf
    # A session opens one text, and every request at most one more.
    texts, requests = Texts.room(spec.system_prompts + 2 * spec.requests), Prompts.room(spec.requests)
    made = simulate(
        spec.requests,
        np.uint64(spec.seed),
        len(spec.instances),
        np.cumsum(weights) / weights.sum(),
        spec.block_size_tokens,
        spec.system_prompt_tokens,
        spec.mean_turns,
        spec.turn_tokens,
        spec.max_prompt_tokens,
        spec.regenerate,
        spec.branch,
        spec.sub_agent,
        NS_PER_S / spec.sessions_per_second,
        spec.think_seconds * NS_PER_S,
        texts,
        requests,
    )
    # No step of the clock is long enough to pass over the negative half, so a time that wrapped is seen.
    if requests.times.min() < 0 or int(requests.times.max()) + spec.start_ns >= 2**63:
        raise OptionError(
            f"the trace's times pass 64 bits of nanoseconds; lower requests {spec.requests} or think_seconds "
            f"{spec.think_seconds}, or raise sessions_per_second {spec.sessions_per_second}"
        )
    order = np.argsort(requests.times, kind="stable")
    lengths = requests.tokens[order]
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(lengths // spec.block_size_tokens, out=offsets[1:])
    return RequestColumns(
        keys=keys_of(texts.first(made), requests.texts[order], offsets, np.uint64(spec.seed)),
        offsets=offsets,
        timestamps_ns=requests.times[order] + spec.start_ns,
        input_token_lens=lengths,
        instances=spec.instances,
        instance_of=requests.instances[order],
    )
