"""Facts as text: the forms of it differ by what stands between the fields, and by how ids are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from litehit.curves import FlatCurves, Int64Array
from litehit.facts_reading_kernel import PADDING, most_segments, read_facts
from litehit.facts_text_kernel import most_bytes, write_facts
from litehit.request import MAX_INPUT_TOKENS
from litehit.text_kernels import Bytes, Texts
from litehit.written_texts import written_texts

if TYPE_CHECKING:
    from litehit.facts import FactBatch


def facts_text(
    facts: FactBatch, glue: Texts, written: Callable[[Sequence[str]], Sequence[str]]
) -> tuple[Bytes, Int64Array]:
    """R facts, end to end, each with its curve as JSON's arrays without the outer brackets.

    Args:
        facts: the facts.
        glue: eight pieces, what stands before each field, and after the last.
        written: gives ids as they are to be written.

    Returns:
        uint8[N], the text in UTF-8, and int64[R], where each fact ends in it.
    """
    traces, instances = written_texts(facts.trace_ids, written), written_texts(facts.instance_ids, written)
    curves = facts.hit_curves
    ids = len(traces.text) + len(instances.text)
    out = np.empty(most_bytes(ids, len(glue.text), len(facts), len(curves.starts)), np.uint8)
    ends = np.empty(len(facts), np.int64)
    write_facts(
        out,
        ends,
        *glue,
        *traces,
        *instances,
        facts.timestamps_ns,
        facts.input_token_lens,
        facts.block_size_tokens,
        facts.block_bytes,
        curves.starts,
        curves.runs,
        curves.offsets,
    )
    return out[: ends[-1] if len(ends) else 0], ends


class FactColumns(NamedTuple):
    """R facts; the fields are those of `FactBatch`."""

    trace_ids: list[str]
    instance_ids: list[str]
    timestamps_ns: Int64Array
    input_token_lens: Int64Array
    block_size_tokens: Int64Array
    block_bytes: Int64Array
    hit_curves: FlatCurves


def columns_of_text(facts: Sequence[bytes], glue: Texts) -> FactColumns | None:
    """The inverse of `facts_text` for R facts that it has written; None where one is not valid, or written otherwise.

    Only ids in plain ASCII are read.
    """
    text = b"".join((*facts, bytes(PADDING)))
    ends = np.fromiter(accumulate(map(len, facts)), np.int64, len(facts))
    bounds, numbers = np.empty((len(facts), 4), np.int64), np.empty((len(facts), 4), np.int64)
    starts, runs = (np.empty(most_segments(len(text)), np.int64) for _ in range(2))
    offsets = np.empty(len(facts) + 1, np.int64)
    array = np.frombuffer(text, np.uint8)
    if not read_facts(array, ends, *glue, bounds, numbers, starts, runs, offsets, MAX_INPUT_TOKENS):
        return None
    trace, trace_end, instance, instance_end = bounds.T.tolist()
    times, lengths, block_tokens, block_bytes = np.ascontiguousarray(numbers.T)
    segments = offsets[-1]
    return FactColumns(
        [text[low:high].decode("ascii") for low, high in zip(trace, trace_end, strict=True)],
        [text[low:high].decode("ascii") for low, high in zip(instance, instance_end, strict=True)],
        times,
        lengths,
        block_tokens,
        block_bytes,
        FlatCurves(starts[:segments].copy(), runs[:segments].copy(), offsets),
    )
