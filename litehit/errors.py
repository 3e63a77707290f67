"""Every error the engine raises.

LiteHitError
├── InvalidRequest         a request breaks a rule of preprocessing (also a ValueError)
│   ├── LengthMismatch     number of keys and input length disagree
│   │   └── RoundedUpMismatch  the same, of keys that cover a partial last block too
│   ├── PromptTooLong      a request is longer than any is
│   ├── TraceBlockMismatch  the trace's block size is not the registered one
│   └── CoarseningError    block_size_tokens is no positive multiple of trace_block_size_tokens
├── UnknownInstance        no registration covers an instance id
│   └── VariantAddressed   it is that of a variant, which has no requests of its own
├── RegistrationRefused    a registration in a stream does not fit
│   └── RegistrationNeedsReset  it changes what a cache that is there depends on
├── TimeWentBack           an offline trace's time goes back inside an instance
├── CapacityError          a capacity is no finite number (also a ValueError)
├── OptionError            an option of replay, query or the generator is out of range (also a ValueError)
├── RegistryError          a registry file is unusable; names the file and the line
├── TraceError             an offline replay failed; names the line and the reason
├── FactsError             a facts file is malformed; names the file and the row
├── StateError             arrays given to a `from_state` are inconsistent
└── TooManyBlocks          an instance exceeds the engine's limit of unique blocks
"""

from __future__ import annotations

from collections.abc import Iterable

from litehit.counted import counted
from litehit.time_units import NS_PER_S

_REGISTER_THE_BLOCK = "register the block size of the keys (trace_block_size_tokens; without it block_size_tokens)"


class LiteHitError(Exception):
    """Base of every error the engine raises on purpose."""


class InvalidRequest(LiteHitError, ValueError):
    """A request breaks a rule of preprocessing."""


class LengthMismatch(InvalidRequest):
    """The number of keys is not the number of full trace blocks in the input.

    Attributes:
        keys: number of block keys given.
        input_token_len: input length given, in tokens.
        trace_block_size_tokens: tokens of one trace block.
    """

    def __init__(self, keys: int, input_token_len: int, trace_block_size_tokens: int) -> None:
        self.keys = keys
        self.input_token_len = input_token_len
        self.trace_block_size_tokens = trace_block_size_tokens
        super().__init__(
            f"{counted(keys, 'block key')}, but input_token_len {input_token_len} has "
            f"{counted(input_token_len // trace_block_size_tokens, 'full block')} of "
            f"{counted(trace_block_size_tokens, 'token')}; "
            f"send one key for each full block and none for a partial one, and {_REGISTER_THE_BLOCK}"
        )


class RoundedUpMismatch(LengthMismatch):
    """The number of keys is not the number of blocks in the input, a partial last one included.

    Attributes:
        keys, input_token_len, trace_block_size_tokens: as in `LengthMismatch`.
        field: name of the keys in the trace; None where only the registered block size tells how many there must be.
    """

    def __init__(
        self,
        keys: int,
        input_token_len: int,
        trace_block_size_tokens: int,
        field: str | None = None,
        block_field: str | None = None,
    ) -> None:
        super().__init__(keys, input_token_len, trace_block_size_tokens)
        self.field = field
        blocks = -(-input_token_len // trace_block_size_tokens)
        if field is None:
            given = f"{counted(keys, 'key')}, but an input of {counted(input_token_len, 'token')}"
            block = f", and {_REGISTER_THE_BLOCK}"
        else:
            given = f"{field} has {counted(keys, 'key')}, but input_length {input_token_len}"
            block = "" if block_field is None else f", or state the {block_field}"
        self.args = (
            f"{given} has {counted(blocks, 'block')} of {counted(trace_block_size_tokens, 'token')} (rounded up); "
            f"send one key for each block, the partial last one included{block}",
        )


class PromptTooLong(InvalidRequest):
    """A request's length is none that a prompt has.

    Attributes:
        tokens: its length, as stated or derived.
        limit: what is taken at most.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"input_token_len {tokens:,} is more than {limit:,}; send the prompt's length in tokens, and see whether "
            f"the registered block size (trace_block_size_tokens; without it block_size_tokens) is in tokens too"
        )


class TraceBlockMismatch(InvalidRequest):
    """The block size that a trace states is not the one its instance is registered with."""

    def __init__(self, instance_id: str, stated: int | None, registered: int) -> None:
        self.instance_id = instance_id
        self.stated = stated
        self.registered = registered
        super().__init__(
            f"the trace's blocks have {stated} tokens, but instance {instance_id!r} is registered with "
            f"trace_block_size_tokens {registered}; register it with {stated}"
        )


class CoarseningError(InvalidRequest):
    """The analysis block is no positive multiple of the trace's block."""

    def __init__(self, block_size_tokens: int, trace_block_size_tokens: int) -> None:
        self.block_size_tokens = block_size_tokens
        self.trace_block_size_tokens = trace_block_size_tokens
        super().__init__(
            f"block_size_tokens {block_size_tokens} is not a positive multiple of trace_block_size_tokens "
            f"{trace_block_size_tokens}; blocks can only be made coarser, by a whole factor"
        )


class UnknownInstance(LiteHitError):
    """No registration covers an instance id."""

    def __init__(self, instance_id: str) -> None:
        self.instance_id = instance_id
        super().__init__(
            f"instance_id {instance_id!r} is not registered; add it, or a glob that covers it, to the registry"
        )


class VariantAddressed(UnknownInstance):
    """A request names a variant of an instance.

    Attributes:
        base: the instance.
    """

    def __init__(self, instance_id: str, base: str) -> None:
        super().__init__(instance_id)
        self.base = base
        self.args = (
            f"instance_id {instance_id!r} is a variant of {base!r} in the registry: it is given the requests of "
            f"{base!r} and takes none of its own; send them to {base!r}, or rename the variant",
        )


class RegistrationRefused(LiteHitError):
    """A registration in a stream does not fit.

    Attributes:
        instance_id: the instance.
    """

    def __init__(self, instance_id: str, why: str) -> None:
        self.instance_id = instance_id
        super().__init__(f"instance_id {instance_id!r} is not registered so: {why}")


class RegistrationNeedsReset(RegistrationRefused):
    """A registration changes what the instance's cache depends on."""

    def __init__(self, instance_id: str, changes: Iterable[object]) -> None:
        told = "; ".join(map(str, changes))
        super().__init__(
            instance_id,
            f"{told}; its cache was filled under the one and can't serve the other: "
            f"send reset: true with it to begin with an empty cache",
        )


class TimeWentBack(LiteHitError):
    """An offline trace's time goes back inside an instance."""

    def __init__(self, instance_id: str, timestamp_ns: int, previous_ns: int) -> None:
        self.instance_id = instance_id
        self.timestamp_ns = timestamp_ns
        self.previous_ns = previous_ns
        least = -(-(previous_ns - timestamp_ns) // NS_PER_S)
        super().__init__(
            f"timestamp_ns {timestamp_ns} of instance {instance_id!r} goes back behind {previous_ns}; "
            f"sort the trace by time, or let the replay put it in order (--reorder SECONDS, {least} or more)"
        )


class CapacityError(LiteHitError, ValueError):
    """A capacity is no finite number."""


class OptionError(LiteHitError, ValueError):
    """An option of replay, query or the generator is out of range, or excludes another."""


class RegistryError(LiteHitError):
    """A registry file is unusable."""


class TraceError(LiteHitError):
    """An offline replay failed.

    Attributes:
        line: number of the offending line, from 1; None where the whole file is at fault.
    """

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        self.source = source
        self.line = line
        self.reason = reason
        super().__init__(f"{source}: {reason}" if line is None else f"{source}: line {line}: {reason}")


class FactsError(LiteHitError):
    """A facts file is malformed."""


class StateError(LiteHitError, ValueError):
    """Arrays given to `LiteHit.from_state` or `AggregateCurve.from_state` are inconsistent."""


class TooManyBlocks(LiteHitError):
    """An instance exceeds the engine's limit of unique blocks.

    Attributes:
        blocks: unique blocks there may be after the request.
        limit: unique blocks one core may hold.
        request: index of the request in its batch.
    """

    def __init__(self, blocks: int, limit: int, request: int) -> None:
        self.blocks = blocks
        self.limit = limit
        self.request = request
        super().__init__(
            f"the request may bring the instance to {blocks} unique blocks, more than the engine's limit of {limit}; "
            f"analyse with larger blocks or set a TTL"
        )
