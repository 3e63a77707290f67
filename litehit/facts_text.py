"""Facts as text: the forms of it differ by what stands between the fields, and by how ids are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from litehit.curves import Int64Array
from litehit.facts_text_kernel import most_bytes, write_facts
from litehit.text_kernels import Bytes, Texts, texts_of

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
    traces, instances = texts_of(written(facts.trace_ids)), texts_of(written(facts.instance_ids))
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
